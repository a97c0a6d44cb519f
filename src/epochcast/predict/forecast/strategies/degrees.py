"""Degrees of a product of strategies, as a user writes them: dp8,tp4,pp2.

dp, tp, pp, cp    data, tensor, pipeline and context (sequences) parallel degrees, which multiply to the GPUs
vp2               every pipeline stage has two chunks of the model (interleaved)
ep8               experts are spread over eight of the GPUs of a stage
zero1             the optimizer is sharded over dp and cp
even              every pipeline stage has as many layers (Megatron-LM), not as much work
overlap           tensor parallel ranks exchange in pieces beside their products (tp_comm_overlap of Transformer Engine)
"""

import re
from dataclasses import dataclass
from math import prod

from epochcast.errors import BadInput, UnknownName

SCHEDULES = ("1f1b", "gpipe")
SERIAL = "serial"
"""No pipeline: one stage works at a time."""

_PART = re.compile(r"(dp|tp|pp|vp|cp|ep)(\d+)")
_SPLIT = ("tp", "pp", "cp")
_WORDS = ("zero1", "even", "overlap")


@dataclass(frozen=True, slots=True)
class Layout:
    """data · tensor · pipeline · context ranks; `chunks` parts of the model per stage, run in the order of `schedule`.

    Experts are spread over `expert` of the ranks of a stage. `is_even`: stages of as many layers, not of as much work.
    `overlaps`: tensor parallel ranks that split norms, too, exchange beside their products.
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    chunks: int = 1
    schedule: str = "1f1b"
    context: int = 1
    expert: int = 1
    is_even: bool = False
    overlaps: bool = False

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


def degrees_in(text: str) -> dict[str, int] | None:
    """The degrees of a product by name (a word such as zero1 counts as 1), None where the text is no product."""
    parts = [part.strip() for part in text.strip().casefold().split(",")]
    if not any(_PART.fullmatch(part) for part in parts):
        return None
    degrees: dict[str, int] = {}
    for part in parts:
        match = _PART.fullmatch(part)
        if match is None and part not in _WORDS:
            raise UnknownName(f"part of strategy {text!r}", part, ["dp8", "tp4", "pp2", "vp2", "cp2", "ep8", *_WORDS])
        name, degree = (match[1], int(match[2])) if match else (part, 1)
        if name in degrees:
            raise BadInput(f"strategy {text!r} says {name} twice")
        if degree < 1:
            raise BadInput(f"strategy {text!r}: every degree must be at least 1")
        degrees[name] = degree
    return degrees


def with_data_degree(text: str, degrees: dict[str, int], gpus: int) -> dict[str, int]:
    """A product that leaves dp out has as many data parallel ranks as GPUs are left."""
    if "dp" in degrees:
        return degrees
    split = prod(degrees.get(name, 1) for name in _SPLIT)
    if gpus % split:
        raise BadInput(f"strategy {text!r} splits a model over {split} GPUs, which do not divide {gpus}")
    return {"dp": gpus // split, **degrees}


def product_text(degrees: dict[str, int]) -> str:
    """dp8,tp4,pp2"""
    return ",".join(name if name in _WORDS else f"{name}{degree}" for name, degree in degrees.items())


def layout_of(text: str, degrees: dict[str, int], gpus: int) -> Layout:
    """The ranks of a product; refuses one that is not for so many GPUs."""
    if degrees.get("vp", 1) > 1 and degrees.get("pp", 1) == 1:
        raise BadInput(f"strategy {text!r}: vp cuts the stages of a pipeline into chunks, and there is no pp")
    ranks = prod(degrees.get(name, 1) for name in ("dp", *_SPLIT))
    if ranks != gpus:
        raise BadInput(f"strategy {text!r} is for {ranks} GPUs, and there are {gpus}")
    data, tensor, pipeline, chunks = (degrees.get(name, 1) for name in ("dp", "tp", "pp", "vp"))
    if "even" in degrees and pipeline == 1:
        raise BadInput(f"strategy {text!r}: even is about the stages of a pipeline, and there is no pp")
    if "overlap" in degrees and tensor == 1:
        raise BadInput(f"strategy {text!r}: overlap is about tensor parallel ranks, and there is no tp")
    return Layout(
        data,
        tensor,
        pipeline,
        chunks,
        context=degrees.get("cp", 1),
        expert=degrees.get("ep", 1),
        is_even="even" in degrees,
        overlaps="overlap" in degrees,
    )
