"""Throughput of decoding against published tables, with devices left out.

    python -m studies decode                 writes docs/accuracy/decode-accuracy.md and result.csv

Every row is forecast with the kernels of its device left out, and with engines fitted to the other devices. Memory is
that of Transformers. Fails where the error falls behind what was reached.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from epochcast.hardware.catalogue import find_device
from epochcast.predict.decode.decode_rates import DecodeRates
from studies.figures_csv import figures_csv
from training.decode_rates import fitted_rates, left_out_ratios, memory_ratios
from training.decode_rows import DecodeRow, decode_rows

PAGE = Path(__file__).parents[2] / "docs" / "accuracy" / "decode-accuracy.md"
RESULT = Path(__file__).with_name("result.csv")
TARGET_ERROR, TARGET_HELD, TARGET_MEMORY = 0.20, (0.85, 0.95), 0.12
LEAST_ROWS = 10
COLUMNS = ("engine", "device", "weights", "in_flight", "rows", "mean_error", "median_error", "ratio", "width", "held")


@dataclass(frozen=True, slots=True)
class DecodeFigure:
    """Rows of one kind: errors of throughput, the width of intervals, and how many of them hold."""

    engine: str
    device: str
    weights: str
    in_flight: str
    rows: int
    mean_error: float
    median_error: float
    ratio: float
    width: float
    held: float


def figure(names: tuple[str, str, str, str], ratios: Sequence[float], spreads: tuple[float, float]) -> DecodeFigure:
    """Of forecast ÷ measured throughput; `spreads` are the factors around a step."""
    values = np.array(ratios)
    errors, (low, high) = np.abs(values - 1), spreads
    held = float(np.mean((values >= low) & (values <= high)))
    middle = float(np.exp(np.median(np.log(values))))
    return DecodeFigure(*names, len(values), float(errors.mean()), float(np.median(errors)), middle, high / low, held)


def spread_without(ratios: Sequence[tuple[DecodeRow, float]], engine: str, device: str) -> tuple[float, float]:
    """The factors that other devices of the engine give; of all engines where it ran on one device alone."""
    own = [ratio for row, ratio in ratios if row.engine == engine and row.device != device]
    values = np.array(own or [ratio for row, ratio in ratios if row.device != device])
    return min(1.0, float(np.quantile(values, 0.05))), max(1.0, float(np.quantile(values, 0.95)))


def figures(ratios: Sequence[tuple[DecodeRow, float]]) -> list[DecodeFigure]:
    """By engine, device, format and load; intervals come from devices that are not the row's."""
    groups: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
    for row, ratio in ratios:
        load = "as many as fit" if row.sequences is None else "given"
        groups[row.engine, find_device(row.device).name, row.weights, load].append(ratio)
    names = {find_device(row.device).name: row.device for row, _ in ratios}
    found = [figure(key, own, spread_without(ratios, key[0], names[key[1]])) for key, own in groups.items()]
    return sorted(found, key=lambda each: -each.mean_error)


def overall(ratios: Sequence[tuple[DecodeRow, float]]) -> DecodeFigure:
    """All rows, each with the interval that other devices give."""
    spreads = {(row.engine, row.device): spread_without(ratios, row.engine, row.device) for row, _ in ratios}
    held = [spreads[row.engine, row.device][0] <= q <= spreads[row.engine, row.device][1] for row, q in ratios]
    widths = [high / low for low, high in (spreads[row.engine, row.device] for row, _ in ratios)]
    plain = figure(("all", "", "", ""), [ratio for _, ratio in ratios], (1.0, 1.0))
    return DecodeFigure(
        *("all", "", "", ""),
        plain.rows,
        plain.mean_error,
        plain.median_error,
        plain.ratio,
        float(np.median(widths)),
        float(np.mean(held)),
    )


def page(
    found: Sequence[DecodeFigure], everything: DecodeFigure, memory: Sequence[float], left_out: Counter[str]
) -> str:
    """Failures first."""
    memory_error = float(np.mean(np.abs(np.array(memory) - 1)))
    lines = [
        HEAD,
        "| | reached | target |",
        "|---|---|---|",
        f"| throughput, mean error | {everything.mean_error:.0%} | {TARGET_ERROR:.0%} |",
        f"| throughput, median error | {everything.median_error:.0%} | |",
        f"| 90 % interval holds | {everything.held:.0%} | {TARGET_HELD[0]:.0%} to {TARGET_HELD[1]:.0%} |",
        f"| median width (high ÷ low) | {everything.width:.1f} | |",
        f"| memory of Transformers, mean error ({len(memory)} rows) | {memory_error:.0%} | {TARGET_MEMORY:.0%} |",
        "",
        f"{everything.rows:,} rows. Worst first; groups of fewer than {LEAST_ROWS} rows are in `result.csv`:",
        "",
        "| engine | device | weights | in flight | rows | mean error | median | forecast ÷ measured | width | holds |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for each in (each for each in found if each.rows >= LEAST_ROWS):
        errors = (
            f"{each.mean_error:.0%} | {each.median_error:.0%} | {each.ratio:.2f} | {each.width:.1f} | {each.held:.0%}"
        )
        lines.append(f"| {each.engine} | {each.device} | {each.weights} | {each.in_flight} | {each.rows} | {errors} |")
    lines += ["", "Rows that were not asked, and why:", ""]
    lines += [f"- {count:,}: {reason}" for reason, count in left_out.most_common()]
    return "\n".join(lines) + "\n"


def scored(folder: Path) -> tuple[list[tuple[DecodeRow, float]], list[float], Counter[str]]:
    """Forecast ÷ measured throughput of every row with its device left out, the same of memory, and what was left."""
    left_out: Counter[str] = Counter()
    rows = list(decode_rows(folder, left_out))
    rates: DecodeRates = fitted_rates(folder, rows)[1]
    return left_out_ratios(rows, rates), [ratio for _, ratio in memory_ratios(rows, rates)], left_out


def main(say: Callable[[str], object] = print) -> int:
    """Write page and result; 1 where the error falls behind what was reached."""
    ratios, memory, left_out = scored(Path(os.environ["EPOCHCAST_DATA"]))
    found, everything = figures(ratios), overall(ratios)
    PAGE.write_text(page(found, everything, memory, left_out), encoding="utf-8")
    RESULT.write_text(figures_csv(COLUMNS, [everything, *found]), encoding="utf-8")
    say(
        f"{everything.rows} rows: mean error {everything.mean_error:.1%}, median {everything.median_error:.1%}, "
        f"interval {everything.width:.2f} wide holds {everything.held:.1%}"
    )
    return int(everything.mean_error > TARGET_ERROR or not TARGET_HELD[0] <= everything.held <= 1)


HEAD = """# Accuracy: generation

Written by `python -m studies decode`. Published throughput of TensorRT-LLM, vLLM, SGLang and Transformers, each row
forecast with its device left out: the kernels of the device are unknown, and engines are fitted to other devices.
Intervals, too, come from the errors on other devices. *In flight* says whether the source gives the number of
sequences, or ran as many as the memory held.

What is behind the failures:

- *vLLM and SGLang on few devices.* Public tables have them on two and one. With the A100 left out, an engine's share of
  a step is fitted to eight MI300X alone, which wait for each other more than for their host.
- *Small models in Transformers.* Eager steps wait for the host, and hosts differ.
- *FP4 on workstation boards.* RTX PRO 6000 has no kernels of its own left when it is left out; B200's are no stand-in.
"""


if __name__ == "__main__":
    raise SystemExit(main())
