"""The constants of `predict/comm/fitted.toml` and the sustained fractions of NVLink, PCIe and AWS flows, refitted.

    python -m studies.scaling.fit           prints constants and errors, writes studies/scaling/left_out.csv

Least mean |ln(forecast/measured)| with every source weighing the same, by coordinate descent from round guesses,
held lightly where no row says anything. Done once on all sources and once without each, which is scored on what was
left out: its errors, and how wide an interval around what the exchange adds must be to hold nine of ten of its rows.
"""

import csv
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from epochcast.measure.evaluate.given_single import ABOVE_FRACTIONS, BELOW_FRACTIONS
from epochcast.predict.comm.stragglers import HOROVOD, PYTORCH, TENSORFLOW, Waiting, waiting
from epochcast.predict.cost.cost_models import find_cost_model
from studies.scaling.rows import FITTED, Row, log_errors, scaling_rows, with_fractions

LEFT_OUT = Path(__file__).with_name("left_out.csv")
HEADER = ("source", "rows", "mape_left_out", "median_left_out", "mape_shipped", "below_fraction", "above_fraction")
# Where the search begins: what one would say without these runs. NVLink and PCIe by what vendors' benchmarks reach, an
# AWS flow by its 5 Gbit/s (of four ranks, as a factor on the shipped link), no difference between kinds of samples,
# frameworks and boxes.
GUESSES = {
    "spread_fraction": 0.02,
    "tensorflow_spread_fraction": 0.02,
    "network_spread_fraction": 0.02,
    "ragged_sample_fraction": 0.5,
    "padded_sample_fraction": 0.5,
    "shared_fraction": 0.005,
    "step_seconds": 0.5e-3,
    "horovod_step_seconds": 0.5e-3,
    "bucket_seconds": 1e-4,
    "contention": 3.0,
    "nvlink": 0.8,
    "pcie": 0.6,
    "flow": 0.84,
}
WIRES = ("nvlink", "pcie", "flow")
STEPS = (0.5, 0.15)
# Steps of one GPU repeat to so much below and above (`fit.given_single`); what is beyond is the exchange's.
REPEATS = (BELOW_FRACTIONS[0], ABOVE_FRACTIONS[0])
# Of rows, how many lie between the bounds on either side of the middle: nine of ten inside.
EACH_SIDE = 0.95
# What a log of a constant costs per unit it moves: enough to keep still what no row speaks of.
HOLD = 0.0005


def forecasts(rows: list[Row], logs: dict[str, float]) -> list[float]:
    """Steps with every guess multiplied by the exponential of its log."""
    values = constants(logs)
    wires = {name: values[name] for name in WIRES}
    known = {runner: _known(runner, values) for runner in (PYTORCH, TENSORFLOW, HOROVOD)}
    return [row.seconds(with_fractions(row.group, **wires), known[row.placement.strategy.runner]) for row in rows]


def _known(runner: str, values: dict[str, float]) -> Waiting:
    """The constants of the framework that runs the ranks."""
    changes: dict[str, Any] = {name: value for name, value in values.items() if name in Waiting.__slots__}
    if runner == TENSORFLOW:
        changes["spread_fraction"] = values["tensorflow_spread_fraction"]
    if runner == HOROVOD:
        changes["step_seconds"] = values["horovod_step_seconds"]
    return replace(waiting(runner), **changes)


def constants(logs: dict[str, float]) -> dict[str, float]:
    """The constants behind their logs."""
    values = {name: guess * float(np.exp(logs[name])) for name, guess in GUESSES.items()}
    return {**values, "nvlink": min(1.0, values["nvlink"]), "pcie": min(1.0, values["pcie"])}


def loss(rows: list[Row], logs: dict[str, float]) -> float:
    """Mean over sources of the mean log error."""
    errors = log_errors(rows, forecasts(rows, logs))
    sources = np.array([row.run.source for row in rows])
    means = [float(errors[sources == source].mean()) for source in set(sources)]
    return float(np.mean(means)) + HOLD * sum(abs(value) for value in logs.values())


def fit(rows: list[Row]) -> dict[str, float]:
    """Logs of the factors on the guesses."""
    logs = dict.fromkeys(GUESSES, 0.0)
    best = loss(rows, logs)
    for step in STEPS:
        is_better = True
        while is_better:
            is_better = False
            for name in logs:
                for change in (step, -step):
                    tried = {**logs, name: logs[name] + change}
                    found = loss(rows, tried)
                    if found < best - 1e-5:
                        logs, best, is_better = tried, found, True
                        break
    return logs


def needed_fractions(rows: list[Row], forecasts: np.ndarray) -> tuple[float, float]:
    """The least f with |measured - forecast| <= hypot(repeats · single step, f · added) on 95 % of rows, on the side
    below the forecast and on the side above.
    """
    measured = np.array([row.run.step_seconds for row in rows])
    single = np.array([row.single_seconds for row in rows])
    added = np.maximum(forecasts - single, 1e-9)
    found = []
    for side, repeats in zip((forecasts - measured, measured - forecasts), REPEATS, strict=True):
        beyond = np.sqrt(np.maximum(0.0, np.maximum(0.0, side) ** 2 - (repeats * single) ** 2)) / added
        found.append(float(np.quantile(beyond, EACH_SIDE)))
    return found[0], found[1]


def main() -> int:
    """Fit on all and without each source; write what the latter scored."""
    rows = scaling_rows(Path(os.environ["EPOCHCAST_DATA"]), find_cost_model(), every=100)
    lines = []
    for left_out in (None, *FITTED):
        logs = fit([row for row in rows if row.run.source != left_out])
        print(left_out or "none", "left out:", {name: float(f"{v:.2g}") for name, v in constants(logs).items()})
        if left_out is None:
            continue
        held = [row for row in rows if row.run.source == left_out]
        measured = np.array([row.run.step_seconds for row in held])
        answers = np.array(forecasts(held, logs))
        errors = np.abs(answers / measured - 1)
        shipped = np.abs(np.array([row.seconds() for row in held]) / measured - 1)
        scores = (errors.mean(), np.median(errors), shipped.mean(), *needed_fractions(held, answers))
        lines.append((left_out, len(held), *(f"{score:.4f}" for score in scores)))
        print(" ", *lines[-1])
    with LEFT_OUT.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([HEADER, *lines])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
