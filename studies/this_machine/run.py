"""The whole loop on the machine it is run on: measure, fit, forecast, train for real, compare.

    python -m studies this_machine        writes docs/how-to/this-machine.md and result.csv; ten to fifteen minutes
    python -m studies.this_machine.run --quick      the same in about four, on fewer cases, writing nothing

Five minutes of `epochcast bench` (ops, a few networks, collectives) make a profile. Then networks that were not among
those are trained, in turns, and compared with what the profile says of them; beside it the sums of their layers timed
alone, as in the source report, and those sums divided by 1.5. Then the report's networks on Keras, and two processes.
"""

import argparse
import csv
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean
from typing import TypeVar

import epochcast as ec
from epochcast.measure.bench.machine_fingerprint import host_facts, library_versions
from epochcast.predict.cost.local_file import save_local
from studies.this_machine.cases import KERAS, SCALED, TRAINED, Case
from studies.this_machine.measure import (
    LayerSum,
    Scaled,
    Shares,
    Trained,
    bench,
    layer_sums,
    scale,
    torch_step,
    train,
    train_keras,
)

NEEDS_DATA = False
BY_HAND = True
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "this-machine.md"
RESULT = Path(__file__).with_name("result.csv")
BEGIN, END = "<!-- measured: written by python -m studies this_machine -->\n", "<!-- end of measured -->"
REPORT_FACTOR = 1.5
TARGET_MAPE, TARGET_COVERAGE, TARGET_SCALING = 0.15, 0.8, 0.15

K = TypeVar("K")


@dataclass(frozen=True)
class Row:
    """One network at one batch: forecast, measured, and the forecasts of other methods (NaN where there are none)."""

    framework: str
    trained: Trained
    low_seconds: float
    mid_seconds: float
    high_seconds: float
    layers_seconds: float = math.nan

    def error(self, predicted_seconds: float) -> float:
        """Relative to the measurement."""
        return predicted_seconds / self.trained.seconds - 1

    @property
    def is_inside(self) -> bool:
        """Whether the interval holds the measurement."""
        return self.low_seconds <= self.trained.seconds <= self.high_seconds


@dataclass(frozen=True)
class ScalingRow:
    """A network over two processes: the forecast takes the step of one as measured."""

    run: Scaled
    efficiency: float

    @property
    def error(self) -> float:
        """Of the scaling."""
        return self.efficiency / self.run.efficiency - 1

    @property
    def round_error(self) -> float:
        """Of the scaling, against the median of single rounds."""
        return self.efficiency / self.run.round_efficiency - 1


def kept(path: Path, kind: type[K], make: Callable[[], Sequence[K]]) -> list[K]:
    """The measurements, or those in a file of an earlier run."""
    if not path.exists():
        path.write_text(json.dumps([asdict(one) for one in make()]))  # type: ignore[call-overload]
    found = [kind(**entry) for entry in json.loads(path.read_text())]
    return found


def forecast_rows(framework: str, trained: Sequence[Trained], profile: Path) -> list[Row]:
    """Forecasts of the trained networks with the profile."""
    rows = []
    for case in trained:
        seconds = ec.forecast(
            case.reference,
            device="local",
            profile=profile,
            batch=case.batch,
            optimizer=case.optimizer,
            input_shape=None if case.input_shape is None else tuple(case.input_shape),  # a list in JSON
            framework=framework,
        ).step_seconds
        rows.append(Row(framework, case, seconds.low, seconds.mid, seconds.high))
    return rows


def scaling_row(run: Scaled, profile: Path) -> ScalingRow:
    """Forecast from the step of one process, as measured, and what the exchange adds to it."""
    answer = ec.forecast(
        run.reference,
        device="local",
        profile=profile,
        batch=run.batch,
        optimizer=run.optimizer,
        gpus=run.ranks,
        strategy=run.way,
        link="shared_memory" if run.way == "mirrored" else None,  # both replicas are in one process
        framework="pytorch" if run.way == "ddp" else "tensorflow",
    )
    return ScalingRow(
        run, run.alone_seconds / (run.alone_seconds + (answer.step_parts.exposed_comm if answer.step_parts else 0.0))
    )


def mape(errors: Sequence[float]) -> float:
    """Mean of absolute values, of those that are known."""
    known_errors = [abs(e) for e in errors if not math.isnan(e)]
    return mean(known_errors) if known_errors else math.nan


def main() -> int:
    """Measure, write the page; 1 where a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m studies.this_machine.run")
    parser.add_argument("--quick", action="store_true", help="fewer cases, a shorter bench, nothing written")
    parser.add_argument(
        "--keep", type=Path, help="a folder for measurements and profile; what is there is not measured again"
    )
    given = parser.parse_args()
    os.environ.setdefault("KERAS_BACKEND", "torch")  # here Keras networks are read, not run
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's profiler, which counts memory, greets otherwise
    import torch

    with tempfile.TemporaryDirectory() as folder:
        where = given.keep or Path(folder)
        where.mkdir(parents=True, exist_ok=True)
        return study(where, quick=given.quick, threads=torch.get_num_threads())


def study(folder: Path, *, quick: bool, threads: int) -> int:
    """The loop; everything measured goes into the folder first."""
    began = time.perf_counter()

    def say(what: str) -> None:
        print(f"[{time.perf_counter() - began:5.0f} s] {what}", flush=True)

    file, profile = folder / "measurements.jsonl", folder / "profile.json"
    if not file.exists():
        bench(file, Shares(40, 30, 10, 20) if quick else Shares(), threads, say)
    fitted = ec.fit([file])
    save_local(fitted.model, profile)
    say(f"fitted: {fitted.as_dict()}")

    def few(cases: Sequence[Case]) -> list[Case]:
        return [Case(c.model, c.batches[:1] if quick else c.batches, c.optimizer) for c in cases]

    trained = kept(folder / "trained.json", Trained, lambda: train(few(TRAINED), torch_step))
    rows = forecast_rows("pytorch", trained, profile)
    say(f"{len(rows)} steps of PyTorch trained")
    for row in rows:
        show(row)
    sums = kept(folder / "layers.json", LayerSum, lambda: layer_sums(trained))
    say("single layers timed as in the report")
    rows = [replace(row, layers_seconds=layers.seconds) for row, layers in zip(rows, sums, strict=True)]
    compiled = kept(folder / "keras.json", Trained, lambda: train_keras(few(KERAS), folder / "keras.jsonl"))
    keras_rows = forecast_rows("tensorflow", compiled, profile)
    say(f"{len(keras_rows)} steps of Keras trained")
    for row in keras_rows:
        show(row)
    runs = kept(folder / "scaled.json", Scaled, lambda: [scale(*case) for case in (SCALED[::3] if quick else SCALED)])
    scaling = [scaling_row(run, profile) for run in runs]
    for one in scaling:
        show_scaling(one)
    say("two processes trained")
    verdict = judged(rows, keras_rows, scaling)
    for line in verdict:
        print(line)
    if not quick:
        write(rows, keras_rows, scaling, verdict, fitted.as_dict(), time.perf_counter() - began)
    return int(any(line.endswith("missed") for line in verdict))


def show(row: Row) -> None:
    """One row in the terminal."""
    t = row.trained
    print(
        f"  {row.framework:10} {t.model:22} {t.batch:4d}: measured {1e3 * t.seconds:8.1f} ms (spread {t.spread:4.0%}, "
        f"steal {t.steal_fraction:3.0%}), forecast {1e3 * row.mid_seconds:8.1f} ms {row.error(row.mid_seconds):+6.1%} "
        f"[{1e3 * row.low_seconds:.1f} … {1e3 * row.high_seconds:.1f}] {'inside' if row.is_inside else 'OUTSIDE'}",
        flush=True,
    )


def show_scaling(row: ScalingRow) -> None:
    """One row in the terminal."""
    r = row.run
    print(
        f"  {r.way:10} {r.model:22} {r.batch:4d}: alone {1e3 * r.alone_seconds:.1f} ms, beside "
        f"{1e3 * r.beside_seconds:.1f} ms, together {1e3 * r.together_seconds:.1f} ms; efficiency measured "
        f"{r.efficiency:.0%} (spread {r.spread:.0%}), forecast {row.efficiency:.0%}, {row.error:+.1%}",
        flush=True,
    )


def judged(rows: Sequence[Row], keras_rows: Sequence[Row], scaling: Sequence[ScalingRow]) -> list[str]:
    """Every target, reached or missed."""
    ours = mape([row.error(row.mid_seconds) for row in rows])
    sums = mape([row.error(row.layers_seconds) for row in rows])
    divided = mape([row.error(row.layers_seconds / REPORT_FACTOR) for row in rows])
    both = [*rows, *keras_rows]
    coverage = mean(row.is_inside for row in both)
    networks, rounds = mape([row.error for row in scaling]), mape([row.round_error for row in scaling])

    def verdict(what: str, is_reached: bool) -> str:
        return f"{what}: {'reached' if is_reached else 'missed'}"

    return [
        verdict(f"MAPE over {len(rows)} steps of PyTorch {ours:.1%}, target {TARGET_MAPE:.0%}", ours <= TARGET_MAPE),
        verdict(f"sum of single layers {sums:.1%}, ours less than half", ours < sums / 2),
        verdict(f"sum of single layers ÷ 1.5 {divided:.1%}, ours less than half", ours < divided / 2),
        verdict(
            f"{coverage:.0%} of {len(both)} steps inside the 90 % interval, target {TARGET_COVERAGE:.0%}",
            coverage >= TARGET_COVERAGE,
        ),
        f"MAPE over {len(keras_rows)} steps of Keras {mape([row.error(row.mid_seconds) for row in keras_rows]):.1%}",
        verdict(
            f"scaling over two processes off by {networks:.1%} on average ({rounds:.1%} against medians of single "
            f"rounds), target {TARGET_SCALING:.0%}",
            networks <= TARGET_SCALING,
        ),
    ]


# ---- the page -----------------------------------------------------------------------------------


def write(
    rows: Sequence[Row],
    keras_rows: Sequence[Row],
    scaling: Sequence[ScalingRow],
    verdict: Sequence[str],
    fitted: dict[str, object],
    seconds: float,
) -> None:
    """The measured part of the page, worst first, and the same as a table beside the study."""
    facts, versions = host_facts(), library_versions()
    lines = [
        "",
        f"The machine it was last run on: {facts['cores']} cores, {facts['cpu']}, torch {versions.get('torch')}, "
        f"TensorFlow {versions.get('tensorflow') or versions.get('tensorflow-cpu')}. "
        f"The study took {seconds / 60:.0f} minutes; the profile was made of "
        f"{fitted['ops']} ops, {fitted['steps']} steps and {fitted['collectives']} collectives.",
        "",
        *(f"- {line}" for line in verdict),
        "",
        "| network | batch | measured | repeat spread | forecast | 90 % interval | error | sum of layers | sum ÷ 1.5 |",
        "|---|---|---|---|---|---|---|---|---|",
        *(_line(row) for row in sorted(rows, key=lambda r: -abs(r.error(r.mid_seconds)))),
        "",
        "Keras on TensorFlow:",
        "",
        "| network | batch | measured | repeat spread | forecast | 90 % interval | error | | |",
        "|---|---|---|---|---|---|---|---|---|",
        *(_line(row) for row in sorted(keras_rows, key=lambda r: -abs(r.error(r.mid_seconds)))),
        "",
        "Two processes (or two replicas in one), one thread each, beside one process with one thread:",
        "",
        "| | network | batch each | alone | both, no exchange | together | efficiency | by rounds | spread "
        "| forecast | error |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *(_scaling_line(row) for row in sorted(scaling, key=lambda r: -abs(r.error))),
        "",
    ]
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    PAGE.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + after, encoding="utf-8")
    with RESULT.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(
            ["framework", "model", "batch", "measured_seconds", "spread", "low", "mid", "high", "sum_of_layers_seconds"]
        )
        for row in (*rows, *keras_rows):
            t = row.trained
            figures = (t.seconds, t.spread, row.low_seconds, row.mid_seconds, row.high_seconds, row.layers_seconds)
            table.writerow([row.framework, t.model, t.batch, *(f"{figure:.4g}" for figure in figures)])


def _line(row: Row) -> str:
    t = row.trained
    rivals = "| |"
    if not math.isnan(row.layers_seconds):
        sums = [row.layers_seconds, row.layers_seconds / REPORT_FACTOR]
        rivals = " | ".join(f"{row.error(s):+.0%}" for s in sums) + " |"
    interval = f"{_ms(row.low_seconds)} … {_ms(row.high_seconds)}{'' if row.is_inside else ' (outside)'}"
    return (
        f"| {t.model} | {t.batch} | {_ms(t.seconds)} | {t.spread:.0%} | {_ms(row.mid_seconds)} | {interval} | "
        f"{row.error(row.mid_seconds):+.1%} | {rivals}"
    )


def _scaling_line(row: ScalingRow) -> str:
    r = row.run
    seconds = " | ".join(_ms(value) for value in (r.alone_seconds, r.beside_seconds, r.together_seconds))
    return (
        f"| {r.way} | {r.model} | {r.batch} | {seconds} | {r.efficiency:.0%} | {r.round_efficiency:.0%} | "
        f"{r.spread:.0%} | {row.efficiency:.0%} | {row.error:+.1%} |"
    )


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.1f} ms" if seconds < 0.1 else f"{1e3 * seconds:,.0f} ms"


if __name__ == "__main__":
    sys.exit(main())
