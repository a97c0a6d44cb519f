"""The loader's queue against a real torch DataLoader: sleeping samples, and JPEG decoding on the cores that are idle.

    python -m studies loader        writes docs/explanation/loader.md; about three minutes

Each case is measured several times with the loader's speed and the idle cores measured right before; medians count.
Beside ours: the thesis' max(t_g, t_d/W), and for decoding the same queue on all cores of the machine.
"""

import sys
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from epochcast.measure.bench.idle_cpus import idle_cpus, usable_cpus
from epochcast.measure.bench.jpegs import jpeg_folder
from epochcast.measure.bench.loader_bench import measure_loader
from epochcast.predict.forecast.loader_queue import Feed, Service, WorkerHost

NEEDS_DATA = False
BY_HAND = True
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "loader.md"
REPEATS = 2
SLEEP_TARGET, DECODE_TARGET = 0.08, 0.15
BEGIN, END = "<!-- measured: written by python -m studies loader -->\n", "<!-- end of measured -->"
PREDICTIONS = ("ours_seconds", "thesis_seconds", "all_cores_seconds")
HEADINGS = "| | workers | prefetch | busy | spread of samples | measured step | ours | max(t_g, t_d/W) | all cores |"


class Sleeping(Dataset[torch.Tensor]):
    """Samples that take a gamma-distributed time and no processor."""

    def __init__(self, mean_seconds: float, variation: float, length: int) -> None:
        chance = np.random.default_rng(3)
        shape = 1 / variation**2 if variation else 0.0
        drawn = chance.gamma(shape, mean_seconds / shape, length) if variation else np.full(length, mean_seconds)
        self.seconds = drawn.tolist()

    def __len__(self) -> int:
        return len(self.seconds)

    def __getitem__(self, place: int) -> torch.Tensor:
        time.sleep(self.seconds[place])
        return torch.zeros(16)


@dataclass(frozen=True)
class Case:
    kind: str
    workers: int
    prefetch: int
    gpu_seconds: float
    variation: float = 0.0


@dataclass(frozen=True)
class Row:
    case: Case
    measured_seconds: float
    ours_seconds: float
    thesis_seconds: float
    all_cores_seconds: float

    def error(self, predicted: float) -> float:
        return predicted / self.measured_seconds - 1


SLEEP_BATCH, SLEEP_SECONDS = 8, 0.02
SLEEPING = [
    Case("sleep", workers, prefetch, gpu, variation)
    for workers, prefetch, gpu in ((1, 2, 0.08), (2, 2, 0.07), (4, 2, 0.05), (4, 4, 0.05))
    for variation in (0.0, 0.5, 1.5)
]
DECODE_BATCH = 16
DECODING = [Case("jpeg", workers, 2, gpu) for workers, gpu in ((1, 0.02), (2, 0.02), (2, 0.2), (4, 0.05))]


def real_step(dataset: object, case: Case, batch: int, steps: int) -> tuple[float, float]:
    """Mean seconds of a step behind those that fill the queue, and of the consumer's own part of it."""
    filling = 2 * case.prefetch * case.workers
    plan = [list(range(batch * i, batch * (i + 1))) for i in range(filling + steps)]
    loader: DataLoader[torch.Tensor] = DataLoader(
        dataset,  # type: ignore[arg-type]
        batch_sampler=plan,
        num_workers=case.workers,
        prefetch_factor=case.prefetch if case.workers else None,
    )
    busy, ends = [], []
    for _ in loader:
        begun = time.perf_counter()
        time.sleep(case.gpu_seconds)
        ends.append(time.perf_counter())
        busy.append(ends[-1] - begun)
    return (ends[-1] - ends[filling - 1]) / (len(ends) - filling), mean(busy[filling:])


def sleeping(case: Case) -> Row:
    """The service is known: what was drawn, plus what sleeping oversleeps (measured)."""
    steps = 48
    step_seconds, ours, thesis = [], [], []
    dataset = Sleeping(SLEEP_SECONDS, case.variation, SLEEP_BATCH * (steps + 2 * case.prefetch * case.workers))
    for _ in range(REPEATS):
        measured = measure_loader(DataLoader(dataset, batch_size=SLEEP_BATCH), budget_seconds=1.0)
        # What was drawn is known; how much longer a sleep takes here is measured on the samples behind the first batch.
        seen = dataset.seconds[SLEEP_BATCH : SLEEP_BATCH + measured.samples]
        oversleep = max(0.0, measured.wait_seconds - mean(seen))
        measured_service = replace(
            measured.service(),
            wait_seconds=mean(dataset.seconds) + oversleep,
            variation=case.variation,
            samples_seconds=(),
        )
        step, busy = real_step(dataset, case, SLEEP_BATCH, steps)
        feed = Feed(measured_service, WorkerHost(usable_cpus()), SLEEP_BATCH, case.workers, case.prefetch)
        step_seconds.append(step)
        ours.append(feed.step_seconds(busy))
        thesis.append(max(busy, measured_service.seconds(SLEEP_BATCH) / case.workers))
    return Row(case, median(step_seconds), median(ours), median(thesis), median(ours))


def decoding(case: Case, dataset: object) -> Row:
    """Speed and idle cores are measured beside each run."""
    step_seconds, ours, thesis, naive = [], [], [], []
    for _ in range(REPEATS):
        measured = measure_loader(DataLoader(dataset, batch_size=DECODE_BATCH), budget_seconds=2.0)  # type: ignore[arg-type]
        before = idle_cpus(case.workers, 1.0)
        step, busy = real_step(dataset, case, DECODE_BATCH, 24)
        idle = mean((before, idle_cpus(case.workers, 1.0)))
        service: Service = measured.service()
        feed = Feed(service, WorkerHost(idle), DECODE_BATCH, case.workers, case.prefetch)
        step_seconds.append(step)
        ours.append(feed.step_seconds(busy))
        thesis.append(max(busy, service.seconds(DECODE_BATCH) / case.workers))
        naive.append(replace(feed, host=WorkerHost(usable_cpus())).step_seconds(busy))
    return Row(case, median(step_seconds), median(ours), median(thesis), median(naive))


def main() -> int:
    """Measure, write the page, fail where a target is missed on average."""
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="This DataLoader will create")
    quiet = idle_cpus()
    print(f"{quiet:.2f} of {usable_cpus()} processors are idle", flush=True)
    rows = []
    for case in SLEEPING:
        rows.append(sleeping(case))
        report(rows[-1])
    with jpeg_folder() as pictures:
        for case in DECODING:
            rows.append(decoding(case, pictures))
            report(rows[-1])
    sleep = mean(abs(r.error(r.ours_seconds)) for r in rows if r.case.kind == "sleep")
    decode = mean(abs(r.error(r.ours_seconds)) for r in rows if r.case.kind == "jpeg")
    write(rows, quiet)
    print(f"mean error: sleeping {sleep:.1%} (target {SLEEP_TARGET:.0%}), decoding {decode:.1%} ({DECODE_TARGET:.0%})")
    return int(sleep > SLEEP_TARGET or decode > DECODE_TARGET)


def report(row: Row) -> None:
    case = row.case
    print(f"{case.kind} W={case.workers} p={case.prefetch} g={case.gpu_seconds} cv={case.variation}: measured "
          f"{row.measured_seconds * 1e3:.1f} ms, ours {row.error(row.ours_seconds):+.1%}, "
          f"thesis {row.error(row.thesis_seconds):+.1%}, all cores {row.error(row.all_cores_seconds):+.1%}",
          flush=True)  # fmt: skip


def write(rows: list[Row], quiet: float) -> None:
    """The measured part of docs/explanation/loader.md, worst first."""
    lines = ["", f"{quiet:.2f} of {usable_cpus()} processors were idle at the start.", "", HEADINGS, "|---" * 9 + "|"]
    for row in sorted(rows, key=lambda r: -abs(r.error(r.ours_seconds))):
        case = row.case
        errors = " | ".join(f"{row.error(getattr(row, name)):+.1%}" for name in PREDICTIONS)
        setting = f"{case.workers} | {case.prefetch} | {case.gpu_seconds * 1e3:.0f} ms | {case.variation:.0%}"
        lines.append(f"| {case.kind} | {setting} | {row.measured_seconds * 1e3:.1f} ms | {errors} |")
    for kind, target in (("sleep", SLEEP_TARGET), ("jpeg", DECODE_TARGET)):
        of = [r for r in rows if r.case.kind == kind]
        means = " | ".join(f"{mean(abs(r.error(getattr(r, name))) for r in of):.1%}" for name in PREDICTIONS)
        lines.append(f"| **{kind}, mean error** (target {target:.0%}) | | | | | | {means} |")
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    PAGE.write_text(before + BEGIN + "\n".join(lines) + "\n\n" + END + after, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
