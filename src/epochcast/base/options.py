"""The options of a job and of where it runs: each declared once, beside its default, with its type, unit and help.

A dataclass declares an option as a field: `batch: int | None = option(None, "Samples per GPU and step.", …)`. From the
fields come the keywords of the Python verbs, the flags of the command line, the keys of `epochcast.toml` with their
JSON schema, and the pages that list them. `check_fields` refuses a value of the wrong type in one sentence that names
the option.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from math import isfinite
from operator import index
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from epochcast.base.caching import remembered
from epochcast.errors import BadInput, InvalidOption, MissingUnit, UnknownOption

_METADATA = "option"


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `least` and `most` are the smallest and the largest value allowed, `above` the largest too small.

    `parse` reads it from text, as the command line and the job file write it ("8ms", "3x224x224"); `flag` is how the
    command line spells it where that is not its name, None where only Python and files have it; `default_text` is
    how it shows the default of an option that is parsed. `words` are texts that are values besides those of its type,
    with what they mean; an option of true or false then takes one on the command line, too (`--checkpointing
    selective`). `named` gives the name of a framework's object that stands for one
    (torch.bfloat16), None of any other.
    """

    name: str
    type: type
    default: Any
    help: str
    unit: str = ""
    group: str = ""
    least: float | None = None
    above: float | None = None
    most: float | None = None
    parse: Callable[[str], Any] | None = None
    example: str = ""
    flag: str | None = ""
    is_required: bool = False
    default_text: str | None = None
    words: Mapping[str, Any] = field(hash=False, default_factory=dict)
    named: Callable[[object], str | None] | None = None

    @property
    def command_flag(self) -> str:
        """How the command line spells it."""
        return self.flag or f"--{self.name.replace('_', '-')}"

    def check(self, value: Any) -> Any:
        """The value in the option's own type, or one clear sentence."""
        if value is None:
            if self.default is None or self.is_required:
                return None
            raise InvalidOption(self.name, f" must be {self._wanted}, got None")
        if type(value) is self.type and self.type is not float and self.least is None and self.most is None:
            return value
        if self.named is not None and not isinstance(value, str):
            value = self.named(value) or value
        try:
            checked = self._converted(value)
        except (TypeError, ValueError, OverflowError):
            raise InvalidOption(self.name, f" must be {self._wanted}, got {value!r}") from None
        if isinstance(checked, float) and not isfinite(checked):
            raise InvalidOption(self.name, f" must be {self._wanted}, got {value!r}")
        if isinstance(checked, int | float) and not isinstance(checked, bool):
            self._check_range(checked, value)
        return checked

    def _check_range(self, checked: float, value: Any) -> None:
        if self.least is not None and checked < self.least:
            raise InvalidOption(self.name, f" must be at least {self.least:g}, got {value}")
        if self.above is not None and checked <= self.above:
            raise InvalidOption(self.name, f" must be above {self.above:g}, got {value}")
        if self.most is not None and checked > self.most:
            raise InvalidOption(self.name, f" must be at most {self.most:,}, got {value}")

    def _converted(self, value: Any) -> Any:
        if isinstance(value, str) and value in self.words:
            return self.words[value]
        return _CONVERTERS.get(self.type, partial(_exactly, self.type))(value)

    def read(self, value: Any) -> Any:
        """The value out of a file or a command line: text is parsed where the option is no text itself."""
        if self.parse is None or not isinstance(value, str):
            return self.check(value)
        try:
            return self.check(self.parse(value))
        except MissingUnit as error:
            raise MissingUnit(error.text, error.example, self.name) from None

    @property
    def _wanted(self) -> str:
        wanted = _WANTED.get(self.type) or f"an {self.type.__name__}"
        wanted = " or ".join([wanted, *self.words])
        return f"{wanted}, such as {self.example}" if self.example else wanted


def _whole(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    return index(value)


def _number(value: Any) -> float:
    if isinstance(value, bool | str | bytes):
        raise TypeError
    return float(value)


def _exactly(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError
    return value


def _several(convert: Callable[[Any], Any], value: Any) -> tuple[Any, ...]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError
    return tuple(convert(item) for item in value)


_text = partial(_exactly, str)
_CONVERTERS: Mapping[Any, Callable[[Any], Any]] = {
    int: _whole,
    float: _number,
    str: _text,
    bool: partial(_exactly, bool),
    object: lambda value: value,
    tuple[str, ...]: partial(_several, _text),
    tuple[int, ...]: partial(_several, _whole),
    Mapping: partial(_exactly, Mapping),
}
_WANTED: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    object: "a value",
    tuple[str, ...]: "a list of texts",
    tuple[int, ...]: "a list of whole numbers",
    Mapping: "a dictionary",
}


def option(default: Any, help: str, *, metadata: Mapping[str, Any] | None = None, **properties: Any) -> Any:
    """A dataclass field that declares an option; `metadata` are what the field has besides."""
    return field(default=default, metadata={**(metadata or {}), _METADATA: {"help": help, **properties}})


def required(help: str, **properties: Any) -> Any:
    """A dataclass field that declares an option without a default."""
    return field(metadata={_METADATA: {"help": help, **properties}})


@remembered(100)
def options_of(kind: type) -> tuple[Option, ...]:
    """The options that a dataclass declares, in its order."""
    hints = get_type_hints(kind)
    return tuple(
        Option(
            item.name,
            _checked_type(hints[item.name]),
            None if item.default is MISSING else item.default,
            is_required=item.default is MISSING,
            **item.metadata[_METADATA],
        )
        for item in fields(kind)
        if _METADATA in item.metadata
    )


def value_options(kind: type, names: Iterable[str], **later: Any) -> tuple[Option, ...]:
    """Fields of a dataclass that declare nothing but their type, as options to be checked by; `later` are names in its
    annotations that are imported for type checkers alone.
    """
    hints = get_type_hints(kind, localns=later)
    return tuple(
        Option(name, _checked_type(hints[name]), None if NoneType in get_args(hints[name]) else "", "")
        for name in names
    )


def _checked_type(hint: Any) -> Any:
    """The type that values are checked by: without `| None`; of mappings and of tuples of records, whatever is in
    them.
    """
    if isinstance(hint, UnionType) or get_origin(hint) is UnionType:
        hint = next(kind for kind in get_args(hint) if kind is not NoneType)
    if get_origin(hint) is tuple and hint not in _CONVERTERS:
        return tuple
    return Mapping if get_origin(hint) is Mapping else hint


def check_fields(value: Any, options: Iterable[Option]) -> None:
    """Give every field of a new frozen value its own type, or refuse it."""
    for option in options:
        current = getattr(value, option.name)
        if current is option.default:
            continue
        checked = option.check(current)
        if checked is not current:
            object.__setattr__(value, option.name, checked)


def checked(name: str, kind: Any, value: Any, **limits: Any) -> Any:
    """A parameter that is no option of a job, in its own type; None stays None."""
    return Option(name, kind, None, "", **limits).check(value)


def check_mapping(name: str, values: object) -> None:
    """Refuse what is no dictionary."""
    if not isinstance(values, Mapping):
        raise BadInput(f"{name} must be a dictionary, got {values!r}")


def check_names(option_names: Iterable[str], known_names: Iterable[str]) -> None:
    """Refuse the first name that no option has."""
    names = list(known_names)
    for name in option_names:
        if name not in names:
            raise UnknownOption(name, names)
