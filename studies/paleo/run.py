"""PALEO's published estimates, recomputed from PALEO's own assumptions: `python -m studies.paleo.run`.

Writes `result.csv` beside this file and prints it. Returns 1 if a figure we claim to reproduce is off by more than the
tolerance.
"""

import csv
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from studies.paleo.estimates import (
    ALEXNET,
    ALEXNET_EPOCHS,
    ALEXNET_OF_TRICK,
    CAFFE,
    IMAGENET_IMAGES,
    K20,
    K20X,
    NIN,
    NIN_EPOCHS,
    ONE_WEIRD_TRICK,
    TENSORFLOW,
    TENSORFLOW_FFT,
    TITAN_X,
    VGG16,
    data_parallel_seconds,
    hybrid_seconds,
    infiniband,
    passes,
    pcie,
)

RESULT = Path(__file__).with_name("result.csv")
TOLERANCE = 0.05
NEEDS_DATA = False


@dataclass(frozen=True)
class Figure:
    """One published number, ours beside it, and what was measured, where PALEO's paper says.

    `paleo` is what we hold ourselves to; None where ours is shown for comparison only.
    """

    what: str
    unit: str
    ours: float
    paleo: float | None
    measured: float | None = None
    paleo_other: float | None = None

    @property
    def error(self) -> float | None:
        """(ours - PALEO) / PALEO"""
        return None if self.paleo is None else self.ours / self.paleo - 1

    @property
    def is_reproduced(self) -> bool:
        return self.error is None or abs(self.error) <= TOLERANCE


def figures() -> tuple[Figure, ...]:
    """Every figure of the study."""
    return (*_table_1(), *_alexnet_on_k20(), *_nin_on_k20x())


def _table_1() -> Iterator[Figure]:
    """One TITAN X, percent of peak of TensorFlow.

    PALEO's table used cuDNN's choice of algorithm, which needs a GPU; its GEMM-only figures are what can be recomputed.
    """
    published = (
        ("AlexNet, batch 128", ALEXNET, 128, (53.5, 143.7), (45.96, 118.44), (44.00, 155.10)),
        ("VGG-16, batch 64", VGG16, 64, (558.0, 1267.0), (435.46, 1077.27), (400.46, 1117.48)),
    )
    for name, model, batch, gemm, table, measured in published:
        ours = passes(model, batch, TENSORFLOW, TITAN_X)
        fft = passes(model, batch, TENSORFLOW_FFT, TITAN_X)
        for index, direction in enumerate(("forward", "backward")):
            seconds, fft_seconds = getattr(ours, direction), getattr(fft, direction)
            yield Figure(f"{name}, {direction}, GEMM", "ms", seconds * 1e3, gemm[index], measured[index], table[index])
            yield Figure(
                f"{name}, {direction}, GEMM or FFT", "ms", fft_seconds * 1e3, None, measured[index], table[index]
            )


def _alexnet_on_k20() -> Iterator[Figure]:
    """Batch 128 per GPU, 90 epochs; hybrid and data parallel over PCIe."""
    step = passes(ALEXNET_OF_TRICK[1], 128, ONE_WEIRD_TRICK, K20).total
    yield Figure("AlexNet, 1 K20, one step", "ms", step * 1e3, 402.0, 418.0)
    steps = ALEXNET_EPOCHS * IMAGENET_IMAGES / 128
    hybrid = {1: 96.31, 2: 49.57, 4: 25.42, 8: 14.37}
    data = {1: 96.31, 2: 55.90, 4: 32.82, 8: 23.65}
    measured = {1: 98.95, 2: 50.24, 4: 26.20, 8: 16.68}
    for gpus, hours in hybrid.items():
        ours = hybrid_seconds(128, gpus) * steps / gpus / 3600
        yield Figure(f"AlexNet, {gpus} K20, hybrid", "h", ours, hours, measured[gpus])
    for gpus, hours in data.items():
        seconds = data_parallel_seconds(ALEXNET_OF_TRICK[1], 128, ONE_WEIRD_TRICK, K20, pcie(gpus))
        yield Figure(f"AlexNet, {gpus} K20, data parallel", "h", seconds * steps / gpus / 3600, hours)


def _nin_on_k20x() -> Iterator[Figure]:
    """FireCaffe's network at Caffe's percent of peak, tree over InfiniBand; speed-ups against one GPU at batch 256."""
    single = passes(NIN, 256, CAFFE, K20X).total
    yield Figure("NiN, 1 K20X, batch 256, one step", "ms", single * 1e3, 1921.8)
    steps = NIN_EPOCHS * IMAGENET_IMAGES / 256
    yield Figure("NiN, 1 K20X, batch 256, 47 epochs", "days", single * steps / 86400, 4.9, 5.8)
    for gpus, batch, speedup, measured in ((32, 256, 15.5, 13.0), (32, 1024, 25.3, 23.0), (128, 1024, 51.7, 39.0)):
        seconds = data_parallel_seconds(NIN, batch // gpus, CAFFE, K20X, infiniband(gpus))
        ours = (single / 256) / (seconds / batch)
        yield Figure(f"NiN, {gpus} K20X, batch {batch}, speed-up", "x", ours, speedup, measured)


def as_csv(found: tuple[Figure, ...]) -> str:
    """The figures as the text of `result.csv`."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["what", "unit", "ours", "paleo", "error", "paleo_with_cudnn_choice", "measured"])
    for figure in found:
        error = "" if figure.error is None else f"{figure.error:+.4f}"
        cells = [_show(figure.ours), _show(figure.paleo), error, _show(figure.paleo_other), _show(figure.measured)]
        writer.writerow([figure.what, figure.unit, *cells])
    return text.getvalue()


def _show(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def main() -> int:
    """Recompute, write, print."""
    found = figures()
    text = as_csv(found)
    RESULT.write_text(text, encoding="utf-8")
    for row in csv.reader(StringIO(text)):
        print("{:44} {:5} {:>9} {:>9} {:>8} {:>24} {:>9}".format(*row))
    missed = [figure.what for figure in found if not figure.is_reproduced]
    compared = sum(figure.paleo is not None for figure in found)
    print(f"{compared - len(missed)} of {compared} figures within {TOLERANCE:.0%}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
