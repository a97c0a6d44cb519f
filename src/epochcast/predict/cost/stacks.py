"""Host seconds of a software stack: the difference between a sum of kernels and a step of a small network.

    one session run      run + op · ops                          a single-layer benchmark pays `run` for every layer
    one training step    step + op · ops + v · variables         v by optimizer: what it runs beyond one fused op
    mirrored             + mirrored + gradient bytes / bandwidth one all-reduce after the backward pass
    first epoch          + start_up                              building the graph, choosing algorithms

Rows of `stacks.toml` say where they come from.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files

from epochcast.base import catalogue_rows as rows
from epochcast.base.caching import remembered
from epochcast.errors import BadInput, UnknownName

FILE = "stacks.toml"


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack's host figures; `layers` is its name in the model of single layers."""

    name: str
    layers: str
    run_seconds: float
    op_seconds: float
    step_seconds: float
    start_up_seconds: float
    variable_seconds: Mapping[str, float] = field(hash=False)
    mirrored_seconds: float
    mirrored_bytes_per_second: float
    source: str

    def __post_init__(self) -> None:
        for part in ("run", "op", "step", "start_up", "mirrored"):
            if not 0 <= getattr(self, f"{part}_seconds") < 60:
                raise BadInput(f"{part}_seconds must be between 0 and 60, got {getattr(self, f'{part}_seconds')}")
        if not self.mirrored_bytes_per_second > 0:
            raise BadInput(f"mirrored bandwidth must be above 0, got {self.mirrored_bytes_per_second}")

    def host_seconds(self, ops: int, variables: int, optimizer: str) -> float:
        """Of one training step."""
        try:
            per_variable_seconds = self.variable_seconds[optimizer]
        except KeyError:
            raise UnknownName(f"optimizer of stack {self.name}", optimizer, self.variable_seconds) from None
        return self.step_seconds + self.op_seconds * ops + per_variable_seconds * variables

    def mirrored_extra_seconds(self, gradient_bytes: float) -> float:
        """α + bytes/B: what MirroredStrategy adds to the step of one replica."""
        return self.mirrored_seconds + gradient_bytes / self.mirrored_bytes_per_second


@remembered(1)
def stacks() -> Mapping[str, Stack]:
    """The shipped stacks by name."""
    return load(files("epochcast.predict.cost").joinpath(FILE).read_text(encoding="utf-8"))


def find_stack(name: str) -> Stack:
    """The stack of that name."""
    try:
        return stacks()[name]
    except KeyError:
        raise UnknownName("software stack", name, stacks()) from None


def load(text: str, file: str = FILE) -> Mapping[str, Stack]:
    """Stacks in a TOML text, checked."""
    return {stack.name: stack for stack in rows.read(rows.parse(text, file), "stack", file, _stack)}


def _stack(row: rows.CatalogueRow) -> Stack:
    return Stack(
        row.text("name"),
        row.text("layers"),
        row.number("run_seconds"),
        row.number("op_seconds"),
        row.number("step_seconds"),
        row.number("start_up_seconds"),
        row.numbers("variable_seconds"),
        row.number("mirrored_seconds"),
        row.rate_bytes_per_second("mirrored_bandwidth"),
        row.text("source"),
    )
