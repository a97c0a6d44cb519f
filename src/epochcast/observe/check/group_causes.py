"""Causes between several GPUs: a slow link, one slow rank, and a rate that is that of one GPU."""

from collections.abc import Iterator
from dataclasses import replace

from epochcast.errors import EpochcastError
from epochcast.observe.check.observation import IMAGE, SAMPLE, TOKEN, Observation
from epochcast.observe.check.suspects import COMMON, RARE, USUAL, SpeedQuestion, Suspect
from epochcast.predict.forecast.placement import Placement, placed

INSIDE = ("pcie4", "pcie3", "5us+3.9GB/s")
"""Without NVLink, on an older bus, and on four lanes of PCI Express 3 (3.9 GB/s) or eight of 2."""
BETWEEN = ("ethernet_100g", "ethernet_25g", "ethernet_10g", "ethernet_1g")
SLOW_RANK = (1.1, 3.0)
RANK_SHOWS, EXCHANGE_SHOWS = 1.15, 0.3
LINK_TEST = "nvidia-smi topo -m, and NCCL_DEBUG=INFO: the log names the wires that NCCL takes"
RANK_TEST = "time every rank apart: a step without all-reduce (model.no_sync()) shows the slow one"
RATE_TEST = "multiply by the number of GPUs: many trainers print the rate of one"


def link_causes(question: SpeedQuestion) -> Iterator[Suspect]:
    """Slower wires than forecast."""
    here = question.placement
    if here.gpus == 1:
        return
    share = question.signs.exchange_fraction
    is_shown = share is not None and share > EXCHANGE_SHOWS
    shown = f"; exchanging takes {share:.0%} of the step" if is_shown else ""
    gpu = question.signs.gpu
    if gpu is not None and gpu.lanes and gpu.top_lanes and gpu.lanes < gpu.top_lanes:
        is_shown, shown = True, f"; the GPU has {gpu.lanes} of {gpu.top_lanes} lanes"
    names = INSIDE if here.nodes == 1 else BETWEEN
    for name in names:
        slower = _over(here, name)
        step = None if slower is None else question.instead(placement=slower)
        if step is not None:
            evidence = f"the GPUs are joined by {name}{shown}"
            prior = (RARE if here.link else USUAL) / len(names)
            yield Suspect("slow link", step, prior, evidence, LINK_TEST, is_shown)


def _over(here: Placement, link: str) -> Placement | None:
    try:
        other = placed(here.device, here.gpus, here.nodes, here.strategy, link=link, price=here.price)
    except EpochcastError:
        return None
    return replace(other, host=here.host)


def rank_causes(question: SpeedQuestion) -> Iterator[Suspect]:
    """One rank that all others wait for."""
    if question.placement.gpus == 1:
        return
    factor = question.signs.rank_factor
    if factor is not None:
        if factor > RANK_SHOWS:
            evidence = f"the slowest rank takes {factor:.2f} times the median"
            yield Suspect("slow rank", question.times(factor), COMMON, evidence, RANK_TEST, True)
        return
    evidence = "one GPU or node is slower, and the others wait for it"
    yield Suspect("slow rank", question.between(*SLOW_RANK), RARE, evidence, RANK_TEST)


def rate_causes(question: SpeedQuestion, observation: Observation) -> Iterator[Suspect]:
    """A throughput of one GPU, taken for that of all."""
    gpus = question.placement.gpus
    if gpus == 1 or observation.is_per_gpu or observation.unit not in (SAMPLE, IMAGE, TOKEN):
        return
    evidence = f"the rate is that of one of {gpus} GPUs"
    yield Suspect("rate of one GPU", question.times(gpus), COMMON, evidence, RATE_TEST)
