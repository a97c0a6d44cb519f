"""A trainer's settings as a table: which key says which option of a job, and how its value becomes that option's.

    KEYS = {"micro_batch_size": says("batch"), "flash_attention": when("attention", "flash"), …}

A key of a nested table is written with dots (`model.lora_rank`); a key that ends in `.*` stands for all that begin so.
`finish` says what follows from several keys, `defaults` what the trainer takes where its file says nothing. A key that
is in no table is `unread`, and the answer names it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from epochcast.describe.capture.config.optimizers import match_optimizer
from epochcast.describe.capture.config.setting import ConfigSettings, Reader
from epochcast.describe.graph.adapters import target_names

Row = Callable[[Reader, str], None]
"""Reads one key."""
Convert = Callable[[Reader, str], Any]
"""The value of a key as an option has it; None where the key says nothing."""
MODEL, DATA, PROGRAM, SUBCOMMAND = "model", "dataset", "program", "subcommand"
"""Options, and the keys under which a command line has what it starts and the first word behind that."""
LAUNCHED: Mapping[str, str] = {"launched_gpus": "gpus", "launched_nodes": "nodes"}
"""Keys under which it has what its launcher says, and the options that they are."""
_DEEPEST = 12
_OFF: tuple[Any, ...] = (False, "", [], {})
"""Values of keys that turn nothing on."""


@dataclass(frozen=True)
class Trainer:
    """How one trainer writes its settings down. `marks` are sets of keys of which one is in its files as a whole."""

    name: str
    marks: tuple[frozenset[str], ...]
    keys: Mapping[str, Row]
    harmless: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    finish: Callable[[Reader], None] | None = None
    programs: tuple[str, ...] = ()
    """What a command line of it calls."""
    has_sections: bool = False
    """Tables of its files only group keys: [train] batch = 1 is batch = 1."""
    rename: Callable[[str], str] | None = None
    """What a key is called here, where it has several spellings."""

    def recognises(self, document: Mapping[str, Any]) -> bool:
        """Whether a file is one of this trainer's."""
        names = set(self._flat(document))
        return any(mark <= names for mark in self.marks)

    def _flat(self, document: Mapping[str, Any]) -> dict[str, Any]:
        joined = flat(document)
        if self.has_sections:
            joined = {key.rpartition(".")[2]: value for key, value in joined.items()}
        return joined if self.rename is None else {self.rename(key): value for key, value in joined.items()}

    def read(self, name: str, document: Mapping[str, Any]) -> ConfigSettings:
        """What a file says of a job."""
        reader = Reader(name, self._flat(document))
        reader.read_keys |= {PROGRAM, SUBCOMMAND, *LAUNCHED}
        for key, option in LAUNCHED.items():
            if key in document:
                reader.set(option, document[key], "launcher")
        for key, row in self.keys.items():
            if key in reader.document:
                reader.read_keys.add(key)
                row(reader, key)
        if self.finish is not None:
            self.finish(reader)
        for option, value in self.defaults.items():
            if not states(reader, option) and not (option == "input_shape" and states(reader, "algorithm")):
                reader.set(option, value, "default", is_default=True)
        harmless = frozenset(key for key, value in reader.document.items() if value in _OFF or self._is_harmless(key))
        return reader.settings(self.name, uses_deepspeed=uses_deepspeed(reader), harmless=harmless)

    def matters(self, key: str) -> bool:
        """Whether a key of a file may change time or memory."""
        return not self._is_harmless(key if self.rename is None else self.rename(key))

    def _is_harmless(self, key: str) -> bool:
        return any(fnmatchcase(key, pattern) for pattern in self.harmless)


def flat(document: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, Any]:
    """The document without nesting: {"model": {"rank": 8}} is {"model.rank": 8}; lists stay as they are."""
    joined: dict[str, Any] = {}
    for key, value in document.items():
        if isinstance(value, Mapping) and value and depth < _DEEPEST:
            joined |= flat({str(name): each for name, each in value.items()}, f"{prefix}{key}.", depth + 1)
        else:
            joined[f"{prefix}{key}"] = value
    return joined


def states(reader: Reader, option: str) -> bool:
    """Whether an option is said so far."""
    return any(setting.option == option for setting in reader.entries)


def stated(reader: Reader, option: str) -> Any:
    """What is said of an option so far; None where nothing is."""
    return next((setting.value for setting in reader.entries if setting.option == option), None)


def uses_deepspeed(reader: Reader) -> bool:
    """Whether a DeepSpeed config is named or contained."""
    return any(
        (key == "deepspeed" or key.startswith("deepspeed.")) and value not in (None, False, "", "none")
        for key, value in reader.document.items()
    )


# ---- conversions ---------------------------------------------------------------------------------


def whole(reader: Reader, key: str) -> int | None:
    """A whole number."""
    return reader.integer(key)


def positive(reader: Reader, key: str) -> int | None:
    """A whole number; none or less says nothing."""
    value = reader.integer(key)
    return value if value is not None and value > 0 else None


def number(reader: Reader, key: str) -> float | None:
    """A number, also one that is written as text (YAML reads 1e-4 as text)."""
    value = reader.take(key)
    if value is None or value is False:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise reader.wrong(key, "a number", value) from None


def length(reader: Reader, key: str) -> tuple[int, ...] | None:
    """Tokens, as the shape of a sample."""
    tokens = positive(reader, key)
    return None if tokens is None else (tokens,)


def name(reader: Reader, key: str) -> str | None:
    """A name as it is written."""
    value = reader.take(key)
    return value.strip() if isinstance(value, str) and value.strip() else None


def names(reader: Reader, key: str) -> tuple[str, ...] | None:
    """Names in a list, or in a text with commas or spaces; of a path the last part; a pattern as it is."""
    value = reader.take(key)
    if not isinstance(value, str | list) or not value:
        return None
    return target_names(value) or None


def epochs(reader: Reader, key: str) -> int | None:
    """Whole epochs; a part of one is named."""
    value = number(reader, key)
    if value is None or value <= 0:
        return None
    if not value.is_integer():
        reader.leave(key, f"{value:g} is no whole number; give `epochs`")
        return None
    return int(value)


# ---- rows ----------------------------------------------------------------------------------------


def says(option: str, convert: Convert = whole) -> Row:
    """The value of an option; the first key of several counts."""

    def read(reader: Reader, key: str) -> None:
        value = convert(reader, key)
        if value is not None and not states(reader, option):
            reader.set(option, value, key)

    return read


def words(option: str, meanings: Mapping[str, Any]) -> Row:
    """One of several words; a word that is not known here is named, one that means None says nothing."""

    def read(reader: Reader, key: str) -> None:
        value = reader.document.get(key)
        word = str(value).strip().casefold() if value is not None else ""
        if word in meanings:
            if meanings[word] is not None and not states(reader, option):
                reader.set(option, meanings[word], key)
        elif word:
            reader.leave(key, word)

    return read


def when(option: str, value: Any) -> Row:
    """The value of an option where a flag is set."""

    def read(reader: Reader, key: str) -> None:
        if is_set(reader, key) and not states(reader, option):
            reader.set(option, value, key)

    return read


def not_modelled(why: str = "") -> Row:
    """A setting that changes time or memory and is not accounted for, where it is on."""

    def read(reader: Reader, key: str) -> None:
        if is_set(reader, key):
            reader.leave(key, why)

    return read


def parallel(why: str) -> Row:
    """The degree of a kind of parallelism that is not modelled; named where it is above 1."""

    def read(reader: Reader, key: str) -> None:
        if (reader.integer(key) or 1) > 1:
            reader.leave(key, why)

    return read


def optimizer(reader: Reader, key: str) -> None:
    """The optimizer by its name in a framework, and how it updates."""
    value = reader.text(key)
    if value and not states(reader, "optimizer"):
        set_optimizer(reader, value, key)


def set_optimizer(reader: Reader, written: str, key: str, *, is_fused: object = None) -> None:
    """An optimizer's name, as one whose update is known here."""
    match = match_optimizer(written, is_fused=is_fused)
    reader.set("optimizer", match.name, key, problem=match.problem)
    reader.notes += [match.note] if match.note else []
    if match.style:
        reader.set("update_style", match.style, key)


def passed_over(reader: Reader, key: str) -> None:
    """A key that `finish` reads, or that changes nothing."""


def is_set(reader: Reader, key: str) -> bool:
    """Whether a flag, a number or a text turns something on."""
    value = reader.take(key)
    if isinstance(value, str):
        return value.strip().casefold() not in ("", "false", "no", "0", "off", "none", "null")
    return bool(value)


def any_set(reader: Reader, *keys: str) -> str:
    """The first key that turns something on; empty where none does."""
    return next((key for key in keys if is_set(reader, key)), "")


def tables(reader: Reader, key: str) -> Iterator[Mapping[str, Any]]:
    """The tables in a list."""
    value = reader.take(key)
    yield from (each for each in value if isinstance(each, Mapping)) if isinstance(value, list) else ()
