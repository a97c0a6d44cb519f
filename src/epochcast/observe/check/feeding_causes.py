"""Causes on the host and around the step: the data loader, launches, synchronising, the first iterations."""

from collections.abc import Iterator
from dataclasses import replace

from epochcast.observe.check.observation import TYPED
from epochcast.observe.check.suspects import COMMON, RARE, USUAL, SpeedQuestion, Suspect
from epochcast.predict.cost.hosts import host_classes
from epochcast.predict.forecast.loader_step import is_decoded
from epochcast.units import show_seconds

WORKERS = (0, 1, 2, 4, 8)
"""Workers of loaders that people run, 0 in the training process itself."""
# Network storage, augmentation in Python, files one by one. Set by hand, as are the other ranges.
SLOW_STORAGE, SYNCHRONISED, FIRST = (1.2, 10.0), (1.05, 2.0), (1.2, 30.0)
# Shares of a step from which a sign counts.
DATA_SHOWS, SYNC_SHOWS, IDLE_SHOWS = 0.1, 0.1, 0.3
STEADY = 1.5
"""Timed one by one, steps whose interval is narrower than this factor do not get faster any more."""
FIRST_STEPS = 20
"""Fewer steps are mostly compilation, autotuning and caches."""
LOADER_TEST = "repeat one batch: next(iter(loader)) once, then train on it; the step without loading is what is left"
LAUNCH_TEST = "--compile reduce-overhead, or double the batch: a launch-bound step hardly gets longer"
SYNC_TEST = "log and evaluate every 100 steps instead of every step; look for .item() and .cpu() in the loop"
FIRST_TEST = "leave out the first 50 steps, or watch whether the rate still rises"


def loader_causes(question: SpeedQuestion) -> Iterator[Suspect]:
    """Waiting for data: as measured, else with fewer workers than the step needs, or slow storage."""
    waiting = question.signs.data_fraction
    if waiting is not None:
        if waiting > DATA_SHOWS:
            evidence = f"waiting for data takes {waiting:.0%} of the step"
            yield Suspect("data loading", question.waiting(waiting), COMMON, evidence, LOADER_TEST, True)
        else:
            yield from _outside_torch(question)
        return
    if (question.signs.idle_fraction or 0) > IDLE_SHOWS:
        yield from _outside_torch(question)
        return
    gpu = question.signs.gpu
    idle = None if gpu is None or gpu.utilisation_fraction is None else 1 - gpu.utilisation_fraction
    is_idle = idle is not None and idle > IDLE_SHOWS
    shown = f"; the GPU is idle {idle:.0%} of the time" if is_idle and idle is not None else ""
    trace = question.forecast.details.trace
    if question.job.loader_seconds is None and is_decoded(trace, question.placement):
        for workers in WORKERS:
            step = question.instead(workers=workers)
            if step is not None:
                evidence = f"{workers} loader worker{'' if workers == 1 else 's'} per GPU cannot keep up{shown}"
                prior = question.prior_of("workers", COMMON) / len(WORKERS)
                yield Suspect("data loading", step, prior, evidence, LOADER_TEST, is_idle)
    evidence = f"slow storage or preprocessing{shown}"
    prior = USUAL if is_decoded(trace, question.placement) else RARE
    yield Suspect("data loading", question.between(*SLOW_STORAGE), prior, evidence, LOADER_TEST, is_idle)


def _outside_torch(question: SpeedQuestion) -> Iterator[Suspect]:
    """A trace in which nothing of PyTorch runs for much of the step: data loaded in the loop, or other Python."""
    idle = question.signs.idle_fraction
    if idle is not None and idle > IDLE_SHOWS:
        evidence = f"no operator runs in {idle:.0%} of the step: data loading, or other work in Python"
        yield Suspect("data loading", question.waiting(idle), COMMON, evidence, LOADER_TEST, True)


def launch_causes(question: SpeedQuestion) -> Iterator[Suspect]:
    """A host that starts kernels more slowly than the one that was taken."""
    if question.placement.device.kind != "gpu":
        return
    busy = question.signs.busy_fraction
    is_idle = busy is not None and busy < 1 - IDLE_SHOWS and not (question.signs.data_fraction or 0) > DATA_SHOWS
    if busy is not None and not is_idle:
        return
    shown = f"; kernels run {busy:.0%} of the step" if busy is not None else ""
    prior = USUAL if question.placement.host is None else RARE
    hosts = host_classes()
    for name, host in hosts.items():
        step = question.instead(placement=replace(question.placement, host=host))
        if step is not None:
            launch = show_seconds(host.launch_seconds.mid)
            evidence = f"a host that takes {launch} per kernel launch ({name}){shown}"
            yield Suspect("kernel launches", step, prior / len(hosts), evidence, LAUNCH_TEST, is_idle)


def pause_causes(question: SpeedQuestion) -> Iterator[Suspect]:
    """Logging, evaluation or checkpoints in what is counted as a step."""
    signs = question.signs
    waiting = signs.sync_fraction
    if waiting is not None and waiting > SYNC_SHOWS and (signs.busy_fraction or 0) < 1 - IDLE_SHOWS:
        evidence = f"the host waits for the GPU {waiting:.0%} of the step"
        yield Suspect("synchronising", question.between(*SYNCHRONISED), USUAL, evidence, SYNC_TEST, True)
        return
    if waiting is None and signs.pause_fraction is None:
        evidence = "logging, evaluation or checkpoints count as steps"
        yield Suspect("synchronising", question.between(*SYNCHRONISED), RARE, evidence, SYNC_TEST)


def first_step_causes(question: SpeedQuestion, source: str) -> Iterator[Suspect]:
    """Compilation, autotuning and caches in the first iterations."""
    steps, seen = question.signs.steps, question.observed_seconds
    is_steady = question.signs.first_factor is not None and seen.high / seen.low < STEADY
    is_early = steps is not None and steps <= FIRST_STEPS
    if is_steady or (not is_early and not (steps is None and source == TYPED)):
        return
    evidence = f"only {steps:,.0f} steps were seen" if is_early else "the first steps are compiled and tuned"
    prior = COMMON if is_early else RARE / 2
    yield Suspect("first iterations", question.between(*FIRST), prior, evidence, FIRST_TEST)
