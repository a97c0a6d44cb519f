"""What submissions to MLPerf do with transformers and diffusion's U-Nets, which their rows do not say.

On GPUs they run the vendor's code (AMD's is a port of NVIDIA's). Linear layers multiply in eight bits where the GPU can
(Transformer Engine, since Hopper's first submission in round 2.1, AMD's in 5.0), else in half. Parameters and gradients
are in half, and the optimizer (Apex's DistributedFusedLAMB, its groups of NVLink) shards its float32 state over the
GPUs of a node: gradients are reduce-scattered there and summed over nodes, parameters gathered behind the update. BERT
trains with LAMB, as the rules of its division ask. Stable Diffusion's U-Net stays in half, under AdamW sharded the same
way (NeMo's MegatronDistributedFusedAdam with amp O2). Sources: NVIDIA's and AMD's accounts of these rounds, recalled.
"""

from dataclasses import dataclass

from epochcast.hardware.device import Device
from epochcast.measure.tables.cells import Row, count, text
from epochcast.measure.tables.run_network import NamedNetwork
from epochcast.measure.tables.run_options import SUBMISSION

_VENDORS = ("NVIDIA", "AMD")
_OWN_KERNELS = ("tinygrad",)
_U_NETS = ("sd21_unet",)
_OPEN_DIVISION = "division open"


@dataclass(frozen=True, slots=True)
class SubmittedStep:
    """How a submission trains; `optimizer` is that of rows which name none."""

    precision: str
    strategy: str | None
    optimizer: str = "lamb"


def submitted_step(row: Row, device: Device, network: NamedNetwork) -> SubmittedStep | None:
    """Of a row of a submission on GPUs; None for other rows and networks, and for frameworks that write kernels of
    their own.
    """
    is_own = any(name in text(row, "framework").casefold() for name in _OWN_KERNELS)
    if text(row, "precision") != SUBMISSION or device.vendor not in _VENDORS or is_own:
        return None
    strategy = _strategy(count(row, "gpus") or 1, count(row, "nodes") or 1)
    if network.reference in _U_NETS:
        return SubmittedStep("fp16_deepspeed", strategy, "adamw")
    if not network.is_of_texts:
        return None
    precision = "fp8" if "fp8" in device.peak_flops_per_second else "fp16_deepspeed"
    return SubmittedStep(precision, strategy)


def trains_another_network(row: Row) -> bool:
    """Whether a row names only the benchmark: in MLPerf's open division the network and its target are free."""
    return text(row, "precision") == SUBMISSION and _OPEN_DIVISION in text(row, "note").casefold()


def _strategy(gpus: int, nodes: int) -> str | None:
    of_a_node = gpus // nodes
    if gpus == 1 or gpus % nodes or of_a_node == 1:
        return None
    return f"zero1:{of_a_node}" if nodes > 1 else "zero1"
