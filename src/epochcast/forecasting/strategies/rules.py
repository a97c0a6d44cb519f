"""Strategies by name: what a user writes, and what it means.

NAME              single, ddp, horovod, mirrored, …                     the table at the foot
NAME:OPTION       mirrored:hierarchical_copy, parameter_server:4, pipeline:gpipe
dp8,tp4,pp2       a product: data, tensor, pipeline and context (cp, sequences) parallel degrees, which multiply to the
                  number of GPUs; vp2 gives every pipeline stage two chunks (interleaved), ep8 spreads experts over
                  eight of the GPUs of a stage, zero1 shards the optimizer over dp and cp
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from math import prod

from epochcast.comm.allreduce import ALGORITHMS
from epochcast.comm.waiting import HOROVOD, PYTORCH, TENSORFLOW
from epochcast.errors import BadInput, UnknownName

MEBIBYTE = 2**20


class Family(Enum):
    """How the GPUs of a strategy work together, which decides how its step is timed."""

    DATA = "every GPU has the whole model; gradients are summed"
    REPLICAS = "one process sends the model to every GPU in every step (torch.nn.DataParallel)"
    SHARDED = "every GPU has a share of parameters, gradients or optimizer state"
    HYBRID = "data parallel convolutions, model parallel products"
    LAYOUT = "a product of data, tensor, pipeline and context parallelism, experts spread inside it"


@dataclass(frozen=True, slots=True)
class Layout:
    """data · tensor · pipeline · context ranks; `chunks` parts of the model per stage, run in the order of `schedule`.

    Experts are spread over `expert` of the ranks of a stage.
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    chunks: int = 1
    schedule: str = "1f1b"
    context: int = 1
    expert: int = 1

    def __post_init__(self) -> None:
        for what in ("data", "tensor", "pipeline", "chunks", "context", "expert"):
            if getattr(self, what) < 1:
                raise BadInput(f"{what} parallel degree must be at least 1, got {getattr(self, what)}")
        if self.schedule not in (*SCHEDULES, SERIAL):
            raise UnknownName("pipeline schedule", self.schedule, (*SCHEDULES, SERIAL))
        if self.stage_ranks % self.expert:
            raise BadInput(f"experts spread over {self.expert} GPUs do not divide the {self.stage_ranks} of a stage")

    @property
    def ranks(self) -> int:
        """All of them."""
        return self.stage_ranks * self.pipeline

    @property
    def stage_ranks(self) -> int:
        """Those of one stage."""
        return self.data * self.context * self.tensor


SCHEDULES = ("1f1b", "gpipe")
SERIAL = "serial"
"""No pipeline: one stage works at a time."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """How ranks bring their gradients together.

    `bucket_bytes` of gradients travel together (None: all at once, after the backward pass), the first bucket is
    `first_bucket_bytes`; what is ready is looked at every `cycle_seconds`; `algorithm` is the collective. `stage` is
    ZeRO's: 1 shards the optimizer's state, 2 also gradients, 3 also parameters. `servers` hold parameters. `runner` is
    who runs the ranks (`comm.waiting`).
    """

    algorithm: str
    bucket_bytes: int | None = None
    first_bucket_bytes: int | None = None
    cycle_seconds: float = 0.0
    family: Family = Family.DATA
    stage: int = 0
    servers: int = 0
    layout: Layout | None = None
    runner: str = PYTORCH


STRATEGIES: Mapping[str, Strategy] = {
    "single": Strategy("ring"),
    # torch.nn.parallel.DistributedDataParallel: bucket_cap_mb=25, first bucket 1 MiB (_DEFAULT_FIRST_BUCKET_BYTES).
    "ddp": Strategy("auto", 25 * MEBIBYTE, 1 * MEBIBYTE),
    # Horovod: HOROVOD_FUSION_THRESHOLD defaults to 64 MiB, HOROVOD_CYCLE_TIME to 1 ms (since 0.16; 5 ms before).
    "horovod": Strategy("nccl", 64 * MEBIBYTE, 64 * MEBIBYTE, cycle_seconds=1e-3, runner=HOROVOD),
    # tf.distribute: one packed all-reduce behind the backward pass (measured in docs: single step + one all-reduce).
    "mirrored": Strategy("nccl", runner=TENSORFLOW),
    "multi_worker_mirrored": Strategy("auto", runner=TENSORFLOW),
    "parameter_server": Strategy("one_to_all", servers=1, runner=TENSORFLOW),
    "data_parallel": Strategy("one_to_all", family=Family.REPLICAS),
    "zero1": Strategy("ring", family=Family.SHARDED, stage=1),
    "zero2": Strategy("ring", family=Family.SHARDED, stage=2),
    "zero3": Strategy("ring", family=Family.SHARDED, stage=3),
    "fsdp": Strategy("ring", family=Family.SHARDED, stage=3),
    "hybrid": Strategy("auto", 25 * MEBIBYTE, 1 * MEBIBYTE, family=Family.HYBRID),
    "model": Strategy("ring", family=Family.LAYOUT),
    "tensor": Strategy("ring", 25 * MEBIBYTE, 1 * MEBIBYTE, family=Family.LAYOUT),
    "pipeline": Strategy("ring", family=Family.LAYOUT),
}

# What tf.distribute calls its collectives is what `comm.allreduce` calls them.
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "mirrored": ("nccl", "hierarchical_copy", "reduce_to_one_device"),
    "multi_worker_mirrored": ("auto", "ring", "nccl"),
    "pipeline": SCHEDULES,
}
_PART = re.compile(r"(dp|tp|pp|vp|cp|ep)(\d+)")


def algorithm_named(name: str) -> str:
    """The all-reduce algorithm of that name, as `comm.allreduce` spells it."""
    key = name.strip().casefold().replace("-", "_")
    if key not in ALGORITHMS and key != "fastest":
        raise UnknownName("all-reduce algorithm", name, [*ALGORITHMS, "fastest"])
    return key


@lru_cache(maxsize=1024)
def find_strategy(text: str, gpus: int) -> Strategy:
    """What a user's text means on so many GPUs."""
    plain = text.strip().casefold().replace("-", "_")
    if plain in STRATEGIES or ":" in plain:
        return _named(text, plain, gpus)
    degrees = parts_of(plain)
    if degrees is not None:
        return _product(text, degrees, gpus)
    raise UnknownName("strategy", text, [*STRATEGIES, "dp8,tp4,pp2"])


def _named(text: str, plain: str, gpus: int) -> Strategy:
    name, _, option = plain.partition(":")
    if name not in STRATEGIES:
        raise UnknownName("strategy", name, STRATEGIES)
    found = STRATEGIES[name]
    if found.family is Family.LAYOUT:
        found = replace(found, layout=_whole(name, option, gpus))
    if not option:
        return found
    if name == "parameter_server":
        if not option.isdecimal() or int(option) < 1:
            raise BadInput(f"strategy {text!r}: the number of servers must be at least 1, such as parameter_server:4")
        return replace(found, servers=int(option))
    known = _OPTIONS.get(name)
    if known is None:
        raise BadInput(f"strategy {text!r}: {name} takes no option")
    if option not in known:
        raise UnknownName(f"option of strategy {name}", option, known)
    return found if found.family is Family.LAYOUT else replace(found, algorithm=algorithm_named(option))


def _whole(name: str, option: str, gpus: int) -> Layout:
    """One way of splitting the model takes all GPUs. `model` runs its stages one after another: no micro-batches."""
    match name:
        case "tensor":
            return Layout(tensor=gpus)
        case "pipeline":
            return Layout(pipeline=gpus, schedule=option if option in SCHEDULES else "1f1b")
        case _:
            return Layout(pipeline=gpus, schedule=SERIAL)


def parts_of(text: str) -> dict[str, int] | None:
    """The degrees of a product by name (zero1 counts as 1), None where the text is no product."""
    parts = [part.strip() for part in text.strip().casefold().split(",")]
    if not any(_PART.fullmatch(part) for part in parts):
        return None
    degrees: dict[str, int] = {}
    for part in parts:
        read = _PART.fullmatch(part)
        if read is None and part != "zero1":
            raise UnknownName(f"part of strategy {text!r}", part, ["dp8", "tp4", "pp2", "vp2", "cp2", "ep8", "zero1"])
        name, degree = (read[1], int(read[2])) if read else ("zero1", 1)
        if name in degrees:
            raise BadInput(f"strategy {text!r} says {name} twice")
        if degree < 1:
            raise BadInput(f"strategy {text!r}: every degree must be at least 1")
        degrees[name] = degree
    return degrees


def _product(text: str, degrees: dict[str, int], gpus: int) -> Strategy:
    if degrees.get("vp", 1) > 1 and degrees.get("pp", 1) == 1:
        raise BadInput(f"strategy {text!r}: vp cuts the stages of a pipeline into chunks, and there is no pp")
    ranks = prod(degrees.get(name, 1) for name in ("dp", "tp", "pp", "cp"))
    if ranks != gpus:
        raise BadInput(f"strategy {text!r} is for {ranks} GPUs, and there are {gpus}")
    data, tensor, pipeline, chunks = (degrees.get(name, 1) for name in ("dp", "tp", "pp", "vp"))
    layout = Layout(data, tensor, pipeline, chunks, context=degrees.get("cp", 1), expert=degrees.get("ep", 1))
    if layout.data == gpus and layout.expert == 1:
        return STRATEGIES["zero1" if "zero1" in degrees else "ddp"]
    stage = degrees.get("zero1", 0)
    return Strategy("auto", 25 * MEBIBYTE, 1 * MEBIBYTE, family=Family.LAYOUT, stage=stage, layout=layout)
