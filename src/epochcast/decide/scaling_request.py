"""What `scaling` is asked beside its job. Flags, keywords of `ec.scaling` and the web API follow from the fields."""

from dataclasses import dataclass

from epochcast.base.options import Option, check_fields, option, options_of, required
from epochcast.units import parse_counts, parse_names


@dataclass(frozen=True, kw_only=True)
class ScalingRequest:
    """The numbers of GPUs to compare, and how the job grows with them."""

    gpus: tuple[int, ...] = required("Numbers of GPUs, like 1,2,4,8,16.", parse=parse_counts, example="[1, 2, 4, 8]")
    regime: str = option("weak", "weak (same batch per GPU), strong (same global batch) or both.")
    allreduce: tuple[str, ...] = option(
        (), "All-reduce algorithms to compare, like nccl,ring.", parse=parse_names, example="['nccl', 'ring']"
    )
    nodes: int | None = option(None, "Nodes, for every number of GPUs.", least=1)
    gpus_per_node: int | None = option(None, "GPUs per node (default: 8).", least=1)
    global_batch: int | None = option(
        None,
        "The batch that strong scaling keeps; default: that of the smallest number of GPUs.",
        least=1,
        flag=None,
    )

    def __post_init__(self) -> None:
        check_fields(self, SCALING_OPTIONS)


SCALING_OPTIONS: tuple[Option, ...] = options_of(ScalingRequest)
