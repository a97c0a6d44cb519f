"""What DeepSpeed and FSDP leave to the host, as the option `offload` says it."""

from collections.abc import Mapping

from epochcast.describe.capture.config.setting import Reader

OPTIMIZER, PARAMETERS = "optimizer", "parameters"


def read_offload(reader: Reader, devices: Mapping[str, str]) -> None:
    """DeepSpeed's: what lies on which device; the last of the keys is that of parameters. Disks are not modelled."""
    on_host = [key for key, device in devices.items() if device == "cpu"]
    for key, device in devices.items():
        if device and device != "none" and key not in on_host:
            reader.leave(key, device)
    if on_host:
        has_parameters = on_host[-1] == list(devices)[-1]
        reader.set("offload", PARAMETERS if has_parameters else OPTIMIZER, on_host[-1])


def set_fsdp_offload(reader: Reader, strategy: str, key: str) -> None:
    """FSDP's, of all that is sharded: with whole parameters on the GPU that is the optimizer."""
    if strategy in ("fsdp", "zero2"):
        reader.set("offload", PARAMETERS if strategy == "fsdp" else OPTIMIZER, key)
    else:
        reader.leave(key, "offload")
