"""Devices by torch's names: `cuda:1`, `mps`, `cpu`."""

from epochcast.errors import BadInput, MissingExtra


def find_torch_device(name: str | None = None, threads: int | None = None) -> str:
    """A device of torch: by default the first GPU, else the processor. Sets the number of its threads, if given."""
    try:
        import torch
    except ModuleNotFoundError:
        raise MissingExtra("torch") from None
    if threads is not None:
        if threads < 1:
            raise BadInput(f"threads must be at least 1, got {threads}")
        torch.set_num_threads(threads)
    gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    available = [*gpus, *(["mps"] if torch.backends.mps.is_available() else []), "cpu"]
    if name is None:
        return available[0]
    wanted = "cuda:0" if name == "cuda" else name
    if wanted not in available:
        raise BadInput(f"no device {name!r} to measure here; torch has: {', '.join(available)}")
    return wanted


def device_type(device: str) -> str:
    """`cuda` of `cuda:1`."""
    return device.partition(":")[0]
