"""What the words of a table mean here, by the one list of aliases, `row_names.toml`.

A word is looked for as it is written, then without what stands in brackets: "adamw (fp32 master)" is adamw, "fp16
(paddle O2)" has its own line. An optimizer that nobody here knows is answered as the nearest one, with a note.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from epochcast.base.caching import remembered
from epochcast.describe.graph.optimizer import OPTIMIZERS
from epochcast.measure.tables.row_errors import UnknownUnit

FUSED, LOOP = "_fused", "_loop"
_PER_GPU = re.compile(r"(/|_per_| per )(gpu|device|chip)(?=$|/| per |_per_)")


@dataclass(frozen=True, slots=True)
class NamedOptimizer:
    """An optimizer of a row: its name here, whether one kernel does the update, or a kernel per step and tensor, and
    what was assumed.
    """

    name: str
    is_fused: bool = False
    note: str | None = None
    is_loop: bool = False


@remembered(1)
def row_names() -> Mapping[str, Any]:
    """The list of aliases."""
    return tomllib.loads(files("epochcast.measure.tables").joinpath("row_names.toml").read_text(encoding="utf-8"))


def keys_of(words: str) -> tuple[str, str]:
    """As the list spells it: the whole text, and the text without brackets."""
    return _key(words), _key(re.sub(r"\([^)]*\)", " ", words))


def _key(words: str) -> str:
    return re.sub(r"[\s\-.()\[\],]+", "_", words.casefold()).strip("_")


def listed(section: str, words: str) -> str | None:
    """What a section says about a word; None where it says nothing."""
    entries: Mapping[str, str] = row_names()[section]
    return next((entries[key] for key in keys_of(words) if key in entries), None)


def named_optimizer(words: str) -> NamedOptimizer:
    """The optimizer of a cell; unknown ones are answered as the nearest, which the note says."""
    entries: Mapping[str, str] = row_names()["optimizer"]
    for key in keys_of(words):
        name = key if key in OPTIMIZERS else entries.get(key)
        if name is not None:
            bare = name.removesuffix(FUSED).removesuffix(LOOP)
            return NamedOptimizer(bare, name.endswith(FUSED), is_loop=name.endswith(LOOP))
    name = listed("nearest_optimizer", words) or _held_optimizer(keys_of(words)[0])
    name = name or str(row_names()["nearest_optimizer"]["unknown"])
    return NamedOptimizer(name, note=f"the optimizer {words} is not known and answered as {name}")


def _held_optimizer(key: str) -> str | None:
    """The longest optimizer whose name is part of this one: my_adamw_variant → adamw."""
    held = [name for name in OPTIMIZERS if name != "none" and name in key]
    return max(held, key=len, default=None)


def source_layout(source: str, framework: str) -> Mapping[str, Any]:
    """What the scripts of a source ask of a trainer that its rows do not name; empty where nothing is known."""
    entry: Mapping[str, Any] = row_names()["source_layout"].get(_key(f"{source} {framework}"), {})
    return entry


def named_framework(words: str) -> str | None:
    """`pytorch` or `tensorflow`: the first word of the list that the text holds; None where it holds none."""
    lower, key = words.casefold(), _key(words)
    parts = re.split(r"[^a-z0-9]+", lower)
    for name, framework in row_names()["framework"].items():
        # Two letters are inside too many words.
        if name in parts or (len(name) > 2 and (name in lower or name in key)):
            return str(framework)
    return None


def framework_strategy(words: str) -> str | None:
    """The strategy that a framework's name says: "pytorch (nn.DataParallel)" → data_parallel."""
    key = _key(words)
    return next((str(strategy) for name, strategy in row_names()["framework_strategy"].items() if name in key), None)


def compiles(words: str) -> bool:
    """Whether the framework compiles every step."""
    return any(name in words.casefold() for name in row_names()["compiles"]["names"])


def is_trainer(kind: str, framework: str) -> bool:
    """Whether a framework's name holds one of those that the list of trainers has for `kind`."""
    return any(name in framework.casefold() for name in row_names()["trainers"][kind])


def has_own_kernels(source: str, framework: str) -> bool:
    """Whether a library convolves by kernels that no cost model here knows."""
    section, words = row_names()["own_kernels"], framework.casefold().strip()
    return words in section.get(source, ()) or any(name in words for name in section["names"])


def named_unit(words: str) -> str:
    """`samples`, `tokens`, `mel_frames` or `steps`: what a throughput counts."""
    word = _PER_GPU.sub("", words.strip().casefold())
    unit = listed("unit", re.sub(r"(/|_per_| per )(s|sec|second)s?$", "", word))
    if unit is None:
        known_units = ", ".join(sorted(row_names()["unit"]))
        raise UnknownUnit(words, known_units)
    return unit


def is_per_gpu(words: str) -> bool:
    """Whether a throughput is that of each GPU: tokens/s/GPU."""
    return _PER_GPU.search(words.strip().casefold()) is not None


def named_task(words: str) -> str | None:
    """What a task says about a language model's head; None where it says nothing."""
    return listed("task", words)


def is_good(quality: str) -> bool:
    """Whether rows of a quality are used without being asked for."""
    word = quality.strip().casefold()
    good, other = (tuple(row_names()["quality"][name]) for name in ("good", "other"))
    return not word or (word.startswith(good) and not word.startswith(other))
