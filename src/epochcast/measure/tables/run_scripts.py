"""What well-known training scripts do whatever version of the framework they run on, by source and network.

A table names the framework of a row, and its version says which kernels that framework would choose. A script with a
model of its own does not ask: NVIDIA's BERT writes its scores to memory under PyTorch 2.5, too, and casts the whole
network to half (apex level O2). `row_names.toml` lists such scripts under `script`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epochcast.base.caching import remembered
from epochcast.measure.tables.row_names import NamedOptimizer, named_optimizer, row_names


@dataclass(frozen=True, slots=True)
class RunScript:
    """`attention` is the kind of its kernels; `half_precision` what it calls mixed precision, as tables write it;
    `optimizer` runs in mixed precision, `full_optimizer` else.
    """

    attention: str
    half_precision: str
    optimizer: NamedOptimizer
    full_optimizer: NamedOptimizer


def run_script(source: str, framework: str, reference: str) -> RunScript | None:
    """The script that made a row of a source, where it is known."""
    return _scripts().get((source, framework, reference))


@remembered(1)
def _scripts() -> Mapping[tuple[str, str, str], RunScript]:
    entries: Mapping[str, Any] = row_names()["script"]
    return {
        (source, entry["framework"], model): RunScript(
            entry["attention"],
            entry["half_precision"],
            named_optimizer(entry["optimizer"]),
            named_optimizer(entry["full_optimizer"]),
        )
        for entry in entries.values()
        for source in entry["sources"]
        for model in entry["models"]
    }
