"""One value that a file says of a job, and all of them with what was left aside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from epochcast.errors import BadInput, EpochcastError

# Values by which tools say that another file or the command line decides.
AUTO = ("auto", "none", "")
GLOBAL_BATCH, STEPS, FILLING = "train_batch_size", "max_steps", "padding_to_length"
"""No options, but worked out with other values: samples of an update over all GPUs, updates in all, and whether each
text is padded to the longest length.
"""
PROMPTS_OF_GPU, RESPONSES_OF_GPU = "prompts_of_gpu", "responses_of_gpu"
"""No options either: prompts, or responses to them, that one GPU has in a step of post-training."""
SETTLED = (GLOBAL_BATCH, STEPS, FILLING, PROMPTS_OF_GPU, RESPONSES_OF_GPU)
PACKING = "packing"


@dataclass(frozen=True, slots=True)
class ConfigSetting:
    """An option with its value; `key` is where the file says it, `problem` why the value cannot be used.

    A default is what the tool takes where the file says nothing.
    """

    option: str
    value: Any
    key: str
    is_default: bool = False
    problem: str = ""


class InvalidSetting(BadInput):
    """A setting that cannot be used: the file or script that has it, and what is wrong with it."""

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(f"{file}: {problem}")
        self.file, self.problem = file, problem


def problem_of(error: EpochcastError) -> str:
    """What is wrong with a setting, without the file, for notes that name it anyway."""
    return error.problem if isinstance(error, InvalidSetting) else str(error)


@dataclass(frozen=True)
class ConfigSettings:
    """What one file says. `not_modelled` changes time or memory and is not accounted for, `unread` may do so; `ignored`
    are keys that do not.

    `is_strict` is false where a value that cannot be used costs a note only: a script was read, not run. With DeepSpeed
    mixed precision keeps its weights in half beside a copy in float32.
    """

    name: str
    kind: str
    settings: tuple[ConfigSetting, ...] = ()
    not_modelled: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_strict: bool = True
    uses_deepspeed: bool = False
    unread: tuple[str, ...] = ()

    def value(self, option: str) -> Any:
        """What it says of an option; None where it says nothing."""
        return next((setting.value for setting in self.settings if setting.option == option), None)


@dataclass
class Reader:
    """Reads a document key by key; what was never asked for is ignored, and listed as such."""

    name: str
    document: Mapping[str, Any]
    prefix: str = ""
    entries: list[ConfigSetting] = field(default_factory=list)
    not_modelled: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    read_keys: set[str] = field(default_factory=set)
    inner: "list[Reader]" = field(default_factory=list)

    def take(self, key: str) -> Any:
        """The value of a key; None where it is absent, null or `auto`."""
        self.read_keys.add(key)
        value = self.document.get(key)
        return None if isinstance(value, str) and value.strip().casefold() in AUTO else value

    def integer(self, key: str) -> int | None:
        """A whole number; also one that is written as text."""
        value = self.take(key)
        if value is None:
            return None
        if isinstance(value, str) and value.strip().lstrip("+-").isdecimal() and len(value) < 20:
            return int(value)
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(key, "a whole number", value)
        return value

    def flag(self, key: str) -> bool:
        """True or false; false where it is absent."""
        value = self.take(key)
        if isinstance(value, str) and value.casefold() in ("true", "yes", "false", "no"):
            return value.casefold() in ("true", "yes")
        if value is not None and not isinstance(value, bool) and value not in (0, 1):
            raise self.wrong(key, "true or false", value)
        return bool(value)

    def text(self, key: str) -> str:
        """A text, in lower case; empty where it is absent."""
        value = self.take(key)
        if value is None or value is False:
            return ""
        if not isinstance(value, str | int):
            raise self.wrong(key, "text", value)
        return str(value).strip().casefold()

    def section(self, key: str) -> "Reader":
        """A nested table; empty where it is absent."""
        value = self.take(key)
        if value is not None and not isinstance(value, Mapping):
            raise self.wrong(key, "a table", value)
        reader = Reader(self.name, value or {}, f"{self.prefix}{key}.", self.entries, self.not_modelled, self.notes)
        self.inner.append(reader)
        return reader

    def set(self, option: str, value: Any, key: str, *, is_default: bool = False, problem: str = "") -> None:
        """Say what an option is."""
        self.entries.append(ConfigSetting(option, value, f"{self.prefix}{key}", is_default, problem))

    def leave(self, key: str, why: str = "") -> None:
        """Say that a setting is not accounted for."""
        self.read_keys.add(key)
        self.not_modelled.append(f"{self.prefix}{key}" + (f" ({why})" if why else ""))

    def wrong(self, key: str, wanted: str, value: Any) -> BadInput:
        """The error for a value of the wrong type."""
        return InvalidSetting(self.name, f"{self.prefix}{key} must be {wanted}, got {shown(value)}")

    def unread(self) -> list[str]:
        """Keys that nobody asked for, those of nested tables with their path."""
        keys = [
            f"{self.prefix}{key}"
            for key, value in self.document.items()
            if key not in self.read_keys and value is not None
        ]
        return [*keys, *(key for reader in self.inner for key in reader.unread())]

    def settings(
        self, kind: str, *, uses_deepspeed: bool = False, harmless: frozenset[str] = frozenset()
    ) -> ConfigSettings:
        """All that was read; `harmless` are keys that change neither time nor memory."""
        unread = self.unread()
        return ConfigSettings(
            self.name,
            kind,
            tuple(self.entries),
            tuple(dict.fromkeys(self.not_modelled)),
            tuple(key for key in unread if key in harmless),
            tuple(dict.fromkeys(self.notes)),
            uses_deepspeed=uses_deepspeed,
            unread=tuple(key for key in unread if key not in harmless),
        )


def shown(value: Any) -> str:
    """A value for a message, cut where it is long."""
    text = repr(value) if not isinstance(value, Mapping | Sequence) or isinstance(value, str) else type(value).__name__
    return text if len(text) <= 60 else f"{text[:60]}…"
