"""Priors: which part of its data sheet a device sustains, by op class and generation, before anything is measured.

    compute efficiency = class compute ratio · generation fp32 (fp64; tensor where the math is tf32, fp16, bf16, fp8)
    memory efficiency  = class memory ratio  · generation memory

Rows of `efficiency.toml` say where they come from. 90 % of the ops of a class are within
`factor` of it. A generation that is not listed uses the row "other"; its ops also get `unknown_factor`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from epochcast.base import catalogue_rows as rows
from epochcast.base.caching import remembered
from epochcast.describe.graph.math_modes import MATHS
from epochcast.describe.graph.op_work import OpClass
from epochcast.errors import BadInput, UnknownName

FILE = "efficiency.toml"
OTHER = "other"


@dataclass(frozen=True, slots=True)
class ClassEfficiency:
    """An op class relative to a large matrix product (compute) and to a large elementwise op (memory)."""

    op_class: OpClass
    compute_ratio: float
    memory_ratio: float
    factor: float
    source: str

    def __post_init__(self) -> None:
        _check_fraction("compute", self.compute_ratio, 2.0)
        _check_fraction("memory", self.memory_ratio, 2.0)
        if not self.factor >= 1:
            raise BadInput(f"factor must be at least 1, got {self.factor}")


@dataclass(frozen=True, slots=True)
class GenerationEfficiency:
    """What a large matrix product sustains of the peak, and a large elementwise op of the memory bandwidth."""

    name: str
    fp32_fraction: float
    tensor_fraction: float
    fp64_fraction: float
    memory_fraction: float
    source: str

    def __post_init__(self) -> None:
        for kind in ("fp32", "tensor", "fp64", "memory"):
            _check_fraction(kind, getattr(self, f"{kind}_fraction"), 1.0)

    def compute_fraction(self, math: str) -> float:
        """The fraction of the peak in `math`."""
        if math not in MATHS:
            raise UnknownName("math", math, MATHS)
        if MATHS[math].on_tensor_cores:
            return self.tensor_fraction
        return self.fp64_fraction if math == "fp64" else self.fp32_fraction


@dataclass(frozen=True, slots=True)
class Priors:
    """The whole table. `kernel_seconds` is the least a kernel lasts, by kind of device."""

    classes: Mapping[OpClass, ClassEfficiency]
    generations: Mapping[str, GenerationEfficiency]
    kernel_seconds: Mapping[str, float]
    unknown_factor: float

    def generation(self, name: str) -> GenerationEfficiency:
        """The row of a generation, or "other"."""
        return self.generations.get(name, self.generations[OTHER])

    def knows(self, generation: str) -> bool:
        """Whether the generation has a row of its own."""
        return generation in self.generations


@remembered(1)
def priors() -> Priors:
    """The shipped table."""
    return load(files("epochcast.predict.cost").joinpath(FILE).read_text(encoding="utf-8"))


def load(text: str, file: str = FILE) -> Priors:
    """A table of priors in a TOML text, checked."""
    document = rows.parse(text, file)
    classes = {row.op_class: row for row in rows.read(document, "class", file, _class)}
    generations = {row.name: row for row in rows.read(document, "generation", file, _generation)}
    missing = [op_class.value for op_class in OpClass if op_class not in classes and op_class is not OpClass.VIEW]
    if missing:
        raise BadInput(f"{file}: no [[class]] row for {', '.join(missing)}")
    if OTHER not in generations:
        raise BadInput(f"{file}: no [[generation]] row called {OTHER!r}")
    kernels = dict(rows.read(document, "kernel", file, _kernel))
    unknown = tuple(rows.read(document, "unknown", file, _unknown))
    if len(unknown) != 1:
        raise BadInput(f"{file}: needs one [[unknown]] row, has {len(unknown)}")
    return Priors(classes, generations, kernels, unknown[0])


def _class(row: rows.CatalogueRow) -> ClassEfficiency:
    name = row.text("name")
    classes = {op_class.value: op_class for op_class in OpClass}
    if name not in classes:
        raise UnknownName("op class", name, classes)
    return ClassEfficiency(
        classes[name], row.number("compute"), row.number("memory"), row.number("factor"), row.text("source")
    )


def _generation(row: rows.CatalogueRow) -> GenerationEfficiency:
    return GenerationEfficiency(
        row.text("name"),
        row.number("fp32"),
        row.number("tensor"),
        row.number("fp64"),
        row.number("memory"),
        row.text("source"),
    )


def _kernel(row: rows.CatalogueRow) -> tuple[str, float]:
    row.text("source")
    return row.text("name"), row.number("seconds")


def _unknown(row: rows.CatalogueRow) -> float:
    row.text("name")
    row.text("source")
    return row.number("factor")


def _check_fraction(name: str, value: float, most: float) -> None:
    if not 0 < value <= most:
        raise BadInput(f"{name} must be above 0 and at most {most:g}, got {value}")
