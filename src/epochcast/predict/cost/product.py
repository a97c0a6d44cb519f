"""One measured matrix product, and what it says of a device: the part of the peak that products sustain in its format.

A product of m×k by k×n takes 2·m·n·k flops. From `bf16:8192x8192x8192=2.1ms` the fraction f of the peak in bf16 follows
that makes the cost model answer 2.1 ms for this product on this device:

    f ← f · forecast seconds(f) / measured seconds, until they agree

so that what shapes cost beside (tiles, traffic) is not counted twice. fp16 and bf16 run on the same units: where their
peaks are equal, one says what the other sustains. Nothing else changes: neither the bandwidth nor the interval.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, log

import numpy as np

from epochcast.describe.graph.math_modes import op_math_index
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.precision import PRECISIONS, Method, find_precision
from epochcast.describe.graph.trace import CLASSES, PHASES, Columns
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.device import Device
from epochcast.hardware.sustained import sustained
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.cost.software_setting import SoftwareSetting
from epochcast.units import parse_seconds, parse_shape, show_count, show_seconds

DEFAULT_SIZE = 8192
LEAST_SIZE = 256
# Below, a product was measured in another unit or format.
LEAST_FRACTION = 0.01
# The forecast of the product must come this near to its measured seconds, as a logarithm.
NEAR = 0.02
ROUNDS = 30
_SAME_UNITS = ("fp16", "bf16")


@dataclass(frozen=True, slots=True)
class Product:
    """m×k by k×n in `seconds`; `precision` is empty where it is that of the job."""

    seconds: float
    m: int = DEFAULT_SIZE
    n: int = DEFAULT_SIZE
    k: int = DEFAULT_SIZE
    precision: str = ""

    def __post_init__(self) -> None:
        if not (isfinite(self.seconds) and self.seconds > 0):
            raise BadInput(f"the seconds of a product must be above 0, got {self.seconds:g}")
        if min(self.m, self.n, self.k) < LEAST_SIZE:
            raise BadInput(f"a product of {self} is too small to tell; measure at least {LEAST_SIZE}, better 8192")
        if self.precision:
            object.__setattr__(self, "precision", product_precision(self.precision))

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def flops(self) -> float:
        """A multiply-add is two."""
        return 2.0 * self.m * self.n * self.k


def product_precision(name: str) -> str:
    """The precision of that name, if a single product can be in it."""
    precision = find_precision(name)
    if precision.method is Method.QUANTISED:
        names = [each.name for each in PRECISIONS.values() if each.method is not Method.QUANTISED]
        raise UnknownName("precision of a product", name, names)
    return precision.name


def parse_product(text: str, size: int = DEFAULT_SIZE, option: str = "") -> Product:
    """The product of "2.1ms", "8192x8192x8192=2.1ms" or "bf16:8192x8192x8192=2.1ms"; of `size` where it names none.

    >>> parse_product("bf16:4096x4096x4096=0.5ms")
    Product(seconds=0.0005, m=4096, n=4096, k=4096, precision='bf16')
    """
    match = re.fullmatch(r"\s*(?:([^:=]+):)?(?:([^:=]+)=)?([^:=]+)", text)
    if match is None:
        raise BadInput(f"{text!r} is no measured product; write it like 'bf16:8192x8192x8192=2.1ms', or '2.1ms'")
    sizes = parse_shape(match[2]) if match[2] else (size,)
    if len(sizes) not in (1, 3):
        raise BadInput(f"a product has three sizes, m x n x k, got {match[2].strip()!r}")
    m, n, k = sizes * 3 if len(sizes) == 1 else sizes
    return Product(parse_seconds(match[3], option, unit="ms"), m, n, k, (match[1] or "").strip())


def product_columns(sizes: Sequence[int], precision: str) -> Columns:
    """A product of m, n, k as the one op of a step."""
    element_bytes = PRECISIONS[precision].products.bytes
    m, n, k = (np.array([float(size)]) for size in sizes)
    ones, zeros = np.ones(1), np.zeros(1)
    return Columns(
        flops=2 * m * n * k,
        read_bytes=(m * k + k * n) * element_bytes,
        written_bytes=m * n * element_bytes,
        m=m,
        n=n,
        k=k,
        count=ones,
        launches=ones,
        op_class=np.array([CLASSES.index(OpClass.LINEAR)]),
        phase=np.array([PHASES.index(Phase.FORWARD)]),
        math=np.array([op_math_index(PRECISIONS[precision].math)]),
        gradient=np.zeros(1, dtype=np.int64),
        element_bytes=ones * element_bytes,
        kernel=ones,
        stride=ones,
        groups=ones,
        channels_in=zeros,
        channels_out=zeros,
        is_matrix=np.ones(1, dtype=bool),
        samples=ones,
    )


def with_product(device: Device, product: Product, model: CostModel, precision: str = "") -> Device:
    """The device with the fraction of its peak that a measured product says; in `precision` where it names none."""
    name = product.precision or precision
    if not name:
        raise BadInput("the format of the measured product is missing: write it like 'bf16:8192x8192x8192=2.1ms'")
    name = product_precision(name)
    math = PRECISIONS[name].math
    check_rate(device, product, math)
    columns = product_columns((product.m, product.n, product.k), name)
    maths = _same_units(device, math)
    fraction = sustained(device).math_fraction(math)
    for _ in range(ROUNDS):
        tried = replace(device, measured_fractions={**device.measured_fractions, **dict.fromkeys(maths, fraction)})
        seconds = float(model.costs(columns, tried, SoftwareSetting()).mid[0])
        if abs(log(seconds / product.seconds)) < NEAR / 10:
            return tried
        fraction = min(max(fraction * seconds / product.seconds, 1e-3), 10.0)
    if abs(log(seconds / product.seconds)) < NEAR:
        return tried
    raise BadInput(
        f"a product of {product} in {show_seconds(product.seconds)} cannot be had on {device.name} in {math}: "
        f"{show_seconds(seconds)} is the nearest that the model answers"
    )


def _same_units(device: Device, math: str) -> tuple[str, ...]:
    """The maths that run on the same units at the same peak."""
    peaks = device.peak_flops_per_second
    if math in _SAME_UNITS and peaks.get("fp16") == peaks.get("bf16"):
        return _SAME_UNITS
    return (math,)


def check_rate(device: Device, product: Product, math: str) -> float:
    """The fraction of the peak in a math that the product reached; refused above it, and far below."""
    rate, peak = product.flops / product.seconds, device.peak(math)
    said = f"a product of {product} in {show_seconds(product.seconds)} is {show_count(rate, 'FLOPS')}"
    if rate > peak:
        raise BadInput(f"{said}, above the peak of {device.name} in {math}, {show_count(peak, 'FLOPS')}")
    if rate < LEAST_FRACTION * peak:
        raise BadInput(
            f"{said}, less than {LEAST_FRACTION:.0%} of the peak of {device.name} in {math}, "
            f"{show_count(peak, 'FLOPS')}: is the unit right?"
        )
    return rate / peak
