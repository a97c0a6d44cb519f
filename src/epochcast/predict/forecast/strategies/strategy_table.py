"""Strategies by name: what a user writes, and what it means.

NAME              single, ddp, horovod, mirrored, …                     the table at the foot
NAME:OPTION       mirrored:hierarchical_copy, parameter_server:4, pipeline:gpipe, fsdp:8
dp8,tp4,pp2       a product of degrees (`degrees`)
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from epochcast.errors import BadInput, UnknownName
from epochcast.predict.comm.allreduce import ALGORITHMS
from epochcast.predict.comm.stragglers import HOROVOD, TENSORFLOW
from epochcast.predict.forecast.exchange import DDP_BUCKETS, HOROVOD_BUCKETS
from epochcast.predict.forecast.strategies.data_parallel import DataParallel
from epochcast.predict.forecast.strategies.degrees import (
    SCHEDULES,
    SERIAL,
    Layout,
    degrees_in,
    layout_of,
    product_text,
    with_data_degree,
)
from epochcast.predict.forecast.strategies.hybrid import Hybrid
from epochcast.predict.forecast.strategies.layout import SplitModel
from epochcast.predict.forecast.strategies.parameter_servers import ParameterServers
from epochcast.predict.forecast.strategies.replicas import OneProcess
from epochcast.predict.forecast.strategies.sharded import Sharded
from epochcast.predict.forecast.strategies.single_gpu import SingleGpu
from epochcast.predict.forecast.strategies.strategy import Strategy

Maker = Callable[[str, int], Strategy]
"""From the option behind a name ("" where there is none) and a number of GPUs to the strategy."""


def find_strategy(text: str, gpus: int) -> Strategy:
    """What a user's text means on so many GPUs."""
    strategy = _on_several(text, gpus)
    return SingleGpu(strategy.name, strategy.algorithm) if gpus == 1 else strategy


def strategy_for(text: str | None, gpus: int, nodes: int) -> Strategy:
    """What a user's text means on so many GPUs and nodes, however they are asked about.

    One GPU needs no strategy; several take ddp where none is given. MirroredStrategy is for one node: on several,
    MultiWorkerMirroredStrategy takes its place. A product that leaves dp out has as many data parallel ranks as GPUs
    are left.
    """
    degrees = degrees_in(text) if text is not None else None
    if text is not None and degrees is not None:
        return find_strategy(product_text(with_data_degree(text, degrees, gpus)), gpus)
    if gpus == 1:
        if text is not None:
            find_strategy(text, gpus)  # an unknown name is refused
        return SINGLE
    return DDP if text is None else find_strategy(text, gpus).across(nodes)


def algorithm_named(name: str) -> str:
    """The all-reduce algorithm of that name, as `predict.comm.allreduce` spells it."""
    key = name.strip().casefold().replace("-", "_")
    if key not in ALGORITHMS and key != "fastest":
        raise UnknownName("all-reduce algorithm", name, [*ALGORITHMS, "fastest"])
    return key


def _on_several(text: str, gpus: int) -> Strategy:
    name, colon, option = text.strip().casefold().replace("-", "_").partition(":")
    if name in STRATEGIES:
        return STRATEGIES[name](option, gpus)
    if colon:
        raise UnknownName("strategy", name, STRATEGIES)
    degrees = degrees_in(text)
    if degrees is None:
        raise UnknownName("strategy", text, [*STRATEGIES, "dp8,tp4,pp2"])
    plain, layout, shards_state = product_text(degrees), layout_of(text, degrees, gpus), "zero1" in degrees
    if layout.data == gpus and layout.expert == 1:
        return replace(ZERO1 if shards_state else DDP, name=plain)
    return SplitModel(plain, "auto", layout=layout, shards_state=shards_state)


# ---- makers -------------------------------------------------------------------------------------


def _plain(strategy: Strategy) -> Maker:
    """It takes no option and is the same on any number of GPUs."""
    return _on_gpus(strategy.name, lambda gpus: strategy)


def _on_gpus(name: str, make: Callable[[int], Strategy]) -> Maker:
    """It takes no option."""

    def checked(option: str, gpus: int) -> Strategy:
        if option:
            raise BadInput(f"strategy '{name}:{option}': {name} takes no option")
        return make(gpus)

    return checked


def _with_option(name: str, option: str, options: tuple[str, ...]) -> str:
    """The name with its option, which must be one of these."""
    if option and option not in options:
        raise UnknownName(f"option of strategy {name}", option, options)
    return f"{name}:{option}" if option else name


# tf.distribute: one packed all-reduce behind the backward pass (measured in docs: single step + one all-reduce). What
# it calls its collectives is what `predict.comm.allreduce` calls them.


def _multi_worker_mirrored(option: str, gpus: int) -> Strategy:
    name = _with_option("multi_worker_mirrored", option, ("auto", "ring", "nccl"))
    return DataParallel(name, option or "auto", TENSORFLOW)


def _mirrored(option: str, gpus: int) -> Strategy:
    name = _with_option("mirrored", option, ("nccl", "hierarchical_copy", "reduce_to_one_device"))
    on_boxes = _multi_worker_mirrored(option if option in ("", "nccl") else "auto", gpus)
    return DataParallel(name, option or "nccl", TENSORFLOW, on_boxes=on_boxes)


def _parameter_server(option: str, gpus: int) -> Strategy:
    name = f"parameter_server:{option}" if option else "parameter_server"
    if option and (not option.isdecimal() or int(option) < 1):
        raise BadInput(f"strategy {name!r}: the number of servers must be at least 1, such as parameter_server:4")
    if option in ("", "1"):
        return DataParallel(name, "one_to_all", TENSORFLOW)
    return ParameterServers(name, "one_to_all", TENSORFLOW, servers=int(option))


def _model(gpus: int) -> Strategy:
    """Stages run one after another: no micro-batches."""
    return SplitModel("model", "ring", layout=Layout(pipeline=gpus, schedule=SERIAL))


def _tensor(gpus: int) -> Strategy:
    return SplitModel("tensor", "ring", layout=Layout(tensor=gpus))


def _pipeline(option: str, gpus: int) -> Strategy:
    name = _with_option("pipeline", option, SCHEDULES)
    return SplitModel(name, "ring", layout=Layout(pipeline=gpus, schedule=option or "1f1b"))


def _sharded(strategy: Sharded) -> Maker:
    """Its option is how many neighbours share what is sharded."""

    def checked(option: str, gpus: int) -> Strategy:
        if not option:
            return strategy
        name = f"{strategy.name}:{option}"
        if not option.isdecimal() or int(option) < 2:
            raise BadInput(f"strategy {name!r}: the number of GPUs that share must be at least 2, such as fsdp:8")
        return replace(strategy, name=name, neighbours=int(option))

    return checked


SINGLE = SingleGpu("single", "ring")
DDP = DataParallel("ddp", "auto", buckets=DDP_BUCKETS)
ZERO1 = Sharded("zero1", "ring", stage=1, before=DDP)
ZERO2 = Sharded("zero2", "ring", stage=2, before=ZERO1)

STRATEGIES: Mapping[str, Maker] = {
    "single": _plain(SINGLE),
    "ddp": _plain(DDP),
    # HOROVOD_CYCLE_TIME defaults to 1 ms (since 0.16; 5 ms before).
    "horovod": _plain(DataParallel("horovod", "nccl", HOROVOD, buckets=HOROVOD_BUCKETS, cycle_seconds=1e-3)),
    "mirrored": _mirrored,
    "multi_worker_mirrored": _multi_worker_mirrored,
    "parameter_server": _parameter_server,
    "data_parallel": _plain(OneProcess("data_parallel", "one_to_all")),
    "zero1": _sharded(ZERO1),
    "zero2": _sharded(ZERO2),
    "zero3": _sharded(Sharded("zero3", "ring", stage=3, before=ZERO2)),
    "fsdp": _sharded(Sharded("fsdp", "ring", stage=3, before=ZERO2, keeps_root=True)),
    "hybrid": _plain(Hybrid("hybrid", "auto")),
    "model": _on_gpus("model", _model),
    "tensor": _on_gpus("tensor", _tensor),
    "pipeline": _pipeline,
}
