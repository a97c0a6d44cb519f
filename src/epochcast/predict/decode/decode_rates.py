"""What devices and engines sustain while generating: small fitted tables (`decode_rates.toml`).

    product     s + sqrt((bytes / fB)² + (flops / gP)²)        s: start, B: memory bandwidth, P: peak of the math
    attention   s + bytes of keys and values / fB
    all-reduce  s + bytes / b                                  by GPUs that share a layer
    experts     f · product                                    routing, and groups smaller than a kernel's tile
    engine      a per layer + c per step                       small kernels between products; scheduler and sampling

`python -m training.decode_rates` fits them to `decode_gemm_small_m`, `gemm_modern`, `decode_attention` (without tables
that imply more than the memory's bandwidth), `decode_allreduce` and `decode_runs`. A device without rows has the median
of its generation, else of all devices: fractions of a data sheet move less between devices than seconds do.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TypeVar

from epochcast.base import catalogue_rows as rows
from epochcast.base.caching import remembered
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.hardware.link import Link

FILE = "decode_rates.toml"
PLAIN_FORMAT = "bf16"
EAGER = "HF generate"
# The wire of an all-reduce carries every byte of a rank 2(p-1)/p times (Patarasuk & Yuan 2009).
_BOTH_WAYS = 2.0

Rate = TypeVar("Rate", "ProductRate", "AttentionRate")


@dataclass(frozen=True, slots=True)
class ProductRate:
    """Of products in a format: seconds to start one, fractions of bandwidth and peak that it sustains."""

    start_seconds: float
    bandwidth_fraction: float
    peak_fraction: float


@dataclass(frozen=True, slots=True)
class AttentionRate:
    """Of attention to a cache in a format."""

    start_seconds: float
    bandwidth_fraction: float


@dataclass(frozen=True, slots=True)
class AllReduceRate:
    """Of an all-reduce inside a CUDA graph."""

    start_seconds: float
    bytes_per_second: float

    def seconds(self, size_bytes: float) -> float:
        """s + n/b."""
        return self.start_seconds + size_bytes / self.bytes_per_second


@dataclass(frozen=True, slots=True)
class EngineRate:
    """An inference engine: host and small kernels, and how it uses memory.

    `most_sequences` is how many it runs at once unless told otherwise, `memory_fraction` the part of the device that it
    takes for weights, activations and cache, or where `of_free` what its cache takes of the rest. `low` and `high` are
    factors around a step: the 5th and 95th percentile of measured ÷ forecast on devices that were left out.
    """

    name: str
    layer_seconds: float
    step_seconds: float
    most_sequences: int
    memory_fraction: float
    is_batching: bool
    of_free: bool
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class DecodeRates:
    """The tables. Keys are names of devices with a format, or with a number of GPUs.

    `memory_spread` are factors around a peak: the 5th and 95th percentile of measured ÷ forecast.
    """

    products: Mapping[tuple[str, str], ProductRate]
    attentions: Mapping[tuple[str, str], AttentionRate]
    all_reduces: Mapping[tuple[str, int], AllReduceRate]
    engines: Mapping[str, EngineRate]
    experts: Mapping[str, float]
    memory_spread: tuple[float, float] = (1.0, 1.0)

    def expert_factor(self, number_format: str) -> float:
        """How many times the seconds of a product of the same size that products of experts take."""
        written = _written(number_format)
        return self.experts.get(written, self.experts.get(PLAIN_FORMAT, 1.0))

    def product(self, device: Device, number_format: str) -> ProductRate:
        """Of the device, else the median of its generation, else of all; of a format nobody timed, that of bf16."""
        rate = _nearest(self.products, device, _written(number_format), _middle_product)
        rate = rate or _nearest(self.products, device, PLAIN_FORMAT, _middle_product)
        if rate is None:
            raise BadInput(f"{FILE} has no products in {number_format} or {PLAIN_FORMAT}")
        return rate

    def attention(self, device: Device, cache_format: str) -> AttentionRate:
        """Of the device, else the median of its generation, else of all; of a format nobody timed, that of bf16."""
        rate = _nearest(self.attentions, device, _written(cache_format), _middle_attention)
        rate = rate or _nearest(self.attentions, device, PLAIN_FORMAT, _middle_attention)
        if rate is None:
            raise BadInput(f"{FILE} has no attention to a cache in {cache_format} or {PLAIN_FORMAT}")
        return rate

    def all_reduce(self, device: Device, link: Link, gpus: int) -> AllReduceRate:
        """Of the device, else of one with the same wires, else by the sustained bandwidth of the link."""
        own = self.all_reduces.get((device.name, gpus))
        if own is not None:
            return own
        alike = [
            rate
            for (name, ranks), rate in self.all_reduces.items()
            if ranks == gpus and find_device(name).interconnect == device.interconnect == link.name
        ]
        start = median(rate.start_seconds for rate in (alike or self.all_reduces.values()))
        if alike:
            return AllReduceRate(start, median(rate.bytes_per_second for rate in alike))
        traffic = _BOTH_WAYS * (gpus - 1) / gpus
        return AllReduceRate(start, link.sustained_bytes_per_second / traffic)

    def engine(self, name: str) -> EngineRate:
        """By its name."""
        if name not in self.engines:
            raise UnknownName("engine", name, self.engines)
        return self.engines[name]

    def eager_engine(self, name: str) -> EngineRate:
        """An engine without CUDA graphs: its host launches every kernel, as Transformers' does."""
        eager = self.engine(EAGER)
        return replace(self.engine(name), layer_seconds=eager.layer_seconds, step_seconds=eager.step_seconds)

    def is_measured(self, device: Device) -> bool:
        """Whether kernels of the device itself were fitted."""
        return any(name == device.name for name, _ in self.products)

    def without(self, device: str) -> "DecodeRates":
        """The tables as if a device had never been measured, for scoring."""
        return DecodeRates(
            {key: rate for key, rate in self.products.items() if key[0] != device},
            {key: rate for key, rate in self.attentions.items() if key[0] != device},
            {key: rate for key, rate in self.all_reduces.items() if key[0] != device},
            self.engines,
            self.experts,
            self.memory_spread,
        )


def load_decode_rates(text: str, file: str = FILE) -> DecodeRates:
    """The tables in a TOML text, checked."""
    document = rows.parse(text, file)
    return DecodeRates(
        dict(rows.read(document, "product", file, _product_row)),
        dict(rows.read(document, "attention", file, _attention_row)),
        dict(rows.read(document, "all_reduce", file, _all_reduce_row)),
        {engine.name: engine for engine in rows.read(document, "engine", file, _engine_row)},
        dict(rows.read(document, "experts", file, _experts_row)),
        next(rows.read(document, "memory", file, _memory_row), (1.0, 1.0)),
    )


@remembered(1)
def decode_rates() -> DecodeRates:
    """The shipped tables."""
    return load_decode_rates(rows.shipped(FILE, __file__))


def _written(number_format: str) -> str:
    """The format whose kernels were timed: fp16 runs as bf16 does."""
    return PLAIN_FORMAT if number_format in ("fp16", "fp32") else number_format


def _nearest(
    table: Mapping[tuple[str, str], Rate], device: Device, number_format: str, middle: Callable[[Sequence[Rate]], Rate]
) -> Rate | None:
    own = table.get((device.name, number_format))
    if own is not None:
        return own
    of_format = {name: rate for (name, each), rate in table.items() if each == number_format}
    sisters = [rate for name, rate in of_format.items() if find_device(name).generation == device.generation]
    several = sisters or list(of_format.values())
    return middle(several) if several else None


def _middle_product(several: Sequence[ProductRate]) -> ProductRate:
    return ProductRate(
        median(rate.start_seconds for rate in several),
        median(rate.bandwidth_fraction for rate in several),
        median(rate.peak_fraction for rate in several),
    )


def _middle_attention(several: Sequence[AttentionRate]) -> AttentionRate:
    return AttentionRate(
        median(rate.start_seconds for rate in several), median(rate.bandwidth_fraction for rate in several)
    )


def _device_name(row: rows.CatalogueRow) -> str:
    return find_device(row.text("name")).name


def _product_row(row: rows.CatalogueRow) -> tuple[tuple[str, str], ProductRate]:
    key = _device_name(row), row.text("format")
    rate = ProductRate(
        row.number("start_seconds"), _fraction(row, "bandwidth_fraction"), _fraction(row, "peak_fraction")
    )
    _provenance(row)
    return key, rate


def _attention_row(row: rows.CatalogueRow) -> tuple[tuple[str, str], AttentionRate]:
    key = _device_name(row), row.text("format")
    rate = AttentionRate(row.number("start_seconds"), _fraction(row, "bandwidth_fraction"))
    _provenance(row)
    return key, rate


def _all_reduce_row(row: rows.CatalogueRow) -> tuple[tuple[str, int], AllReduceRate]:
    key = _device_name(row), row.count("gpus")
    rate = AllReduceRate(row.number("start_seconds"), row.number("bytes_per_second"))
    _provenance(row)
    return key, rate


def _engine_row(row: rows.CatalogueRow) -> EngineRate:
    engine = EngineRate(
        row.text("name"),
        row.number("layer_seconds"),
        row.number("step_seconds"),
        row.count("most_sequences"),
        _fraction(row, "memory_fraction"),
        row.flag("is_batching"),
        row.flag("of_free"),
        row.number("low"),
        row.number("high"),
    )
    if not 0 < engine.low <= 1 <= engine.high:
        raise row.wrong("low", "low ≤ 1 ≤ high", (engine.low, engine.high))
    _provenance(row)
    return engine


def _experts_row(row: rows.CatalogueRow) -> tuple[str, float]:
    number_format, factor = row.text("format"), row.number("factor")
    if not 0.2 <= factor <= 20:
        raise row.wrong("factor", "between 0.2 and 20", factor)
    _provenance(row)
    return number_format, factor


def _memory_row(row: rows.CatalogueRow) -> tuple[float, float]:
    low, high = row.number("low"), row.number("high")
    if not 0 < low <= 1 <= high:
        raise row.wrong("low", "low ≤ 1 ≤ high", (low, high))
    _provenance(row)
    return low, high


def _provenance(row: rows.CatalogueRow) -> None:
    """Rows that were fitted, their mean error, and where they come from: for readers."""
    row.count("rows")
    row.number("error")
    row.text("source")


def _fraction(row: rows.CatalogueRow, key: str) -> float:
    value = row.number(key)
    if not 0 < value <= 1:
        raise row.wrong(key, "a fraction in (0, 1]", value)
    return value
