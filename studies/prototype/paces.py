"""How long a step and a start of each training take on each node, measured by the engine that will run them.

Linux is asked to let the study and its trainings go before all ordinary programs (round robin, real time): on a machine
of their own they would be alone, and on a shared one what others do would be measured instead. Trainings rest seven
eighths of the time, so that others go on; each asks for itself, and what the engine starts besides does not go first.
Where Linux refuses, the answer says so.
"""

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from epochcast.schedule.engines.executor import OVER, Executor, StartOrder
from epochcast.schedule.generators import TALK_TYPES
from epochcast.schedule.workload_jobs import GpuChoice

TRAIN = Path(__file__).with_name("train.py")
TYPES = [kind for kind in TALK_TYPES if kind.gpus == 1]
WIDTHS = (64, 128, 256, 512)
# A training that is timed lasts so many seconds at least, beside its start.
TIMED_SECONDS = 4.0
FIRST_STEPS = 50


@dataclass(frozen=True)
class Pace:
    """Seconds of a step and of everything beside the steps, of a width on a device."""

    step_seconds: float
    start_seconds: float


def goes_first() -> bool:
    """Ask that this process, and not what it starts, goes before ordinary programs; whether it was granted."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except (OSError, AttributeError):
        return False
    return True


def calibrated(engine: Executor, folder: Path) -> dict[tuple[int, str], Pace]:
    """Every width on both nodes, both at once, as they will run."""
    found: dict[tuple[int, str], Pace] = {}
    once = {kind.device: 1 for kind in TYPES}
    _timed(engine, folder, WIDTHS[0], once)  # what only the first start needs
    for width in WIDTHS:
        starts = _timed(engine, folder, width, once)
        steps = dict.fromkeys(once, FIRST_STEPS)
        while (least := min((told := _timed(engine, folder, width, steps)).values()) - max(starts.values())) < (
            TIMED_SECONDS
        ):
            factor = min(10.0, 1.2 * TIMED_SECONDS / max(least, 0.1))
            steps = {device: round(factor * count) for device, count in steps.items()}
        for device, count in steps.items():
            step_seconds = (told[device] - starts[device]) / (count - 1)
            found[width, device] = Pace(step_seconds, starts[device] - step_seconds)
    return found


def _timed(engine: Executor, folder: Path, width: int, steps: Mapping[str, int]) -> dict[str, float]:
    """Seconds from the wish to start until the end is seen, of trainings on all nodes at once."""
    nodes = {node.node_type: node.name for node in engine.nodes(kind.name for kind in TYPES) or ()}
    orders, began, ends = {}, dict[str, float](), dict[str, float]()
    for kind in TYPES:
        key = f"calibration-{uuid4().hex[:12]}"
        env = {"EPOCHCAST_CHECKPOINT_FOLDER": str(folder / key), "EPOCHCAST_DEVICE": kind.device}
        words = (sys.executable, str(TRAIN), str(width), str(steps[kind.device]))
        node, log = nodes.get(kind.name), folder / f"{key}.log"
        orders[kind.device] = StartOrder(key, key, words, folder, log, GpuChoice(kind.device, 1), kind.name, node, env)
        began[kind.device] = time.monotonic()
        engine.start(orders[kind.device])
    while len(ends) < len(orders):
        seen = engine.look(list(orders.values()))
        for device, order in orders.items():
            if device in ends or order.key not in seen or seen[order.key].state != OVER:
                continue
            ends[device] = time.monotonic() - began[device]
            if seen[order.key].exit_code != 0:
                raise RuntimeError(f"a training that was to be timed failed; its log: {order.log}")
        time.sleep(0.05)
    return ends
