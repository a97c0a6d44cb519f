"""The keys of one entry of a spec file, read by type; keys that were not read are refused at the end.

>>> options = Options({"kernel": 3, "strid": 2}, "net.toml: layers[0] 'conv1' (conv)")
>>> options.sizes("kernel"), options.sizes("stride", 1)
(3, 1)
>>> options.done()
Traceback (most recent call last):
epochcast.describe.capture.read_errors.PlacedError: net.toml: layers[0] 'conv1' (conv): no key 'strid'; near: stride
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, NoReturn

from epochcast.describe.capture.read_errors import PlacedError
from epochcast.describe.graph.checked_values import is_int

REQUIRED: Any = object()


class Options:
    """Typed access to a mapping that records which keys were read."""

    def __init__(self, entry: Mapping[str, Any], place: str) -> None:
        self._entry = entry
        self.place = place
        self._read_keys: set[str] = set()

    def has(self, key: str) -> bool:
        """Whether the key is there; it counts as read."""
        self._read_keys.add(key)
        return key in self._entry

    def any(self, key: str, default: Any = REQUIRED) -> Any:
        """The value as it is."""
        if self.has(key):
            return self._entry[key]
        if default is REQUIRED:
            raise PlacedError(self.place, f"{key!r} is missing")
        return default

    def count(self, key: str, default: int = REQUIRED, *, least: int = 1) -> int:
        """A whole number."""
        value = self.any(key, default)
        if not is_int(value) or value < least:
            self.refuse(key, f"a whole number of at least {least}", value)
        return int(value)

    def integer(self, key: str, default: int = REQUIRED) -> int:
        """A whole number of either sign: an axis, an index."""
        value = self.any(key, default)
        if not is_int(value):
            self.refuse(key, "a whole number", value)
        return int(value)

    def sizes(self, key: str, default: int | tuple[int, ...] = REQUIRED, *, least: int = 1) -> int | tuple[int, ...]:
        """One size for all dimensions, or one for each."""
        value = self.any(key, default)
        if is_int(value) and value >= least:
            return int(value)
        if isinstance(value, list | tuple) and value and all(is_int(v) and v >= least for v in value):
            return tuple(value)
        self.refuse(key, f"a whole number of at least {least}, or a list of them", value)

    def shape(self, key: str, default: tuple[int, ...] = REQUIRED) -> tuple[int, ...]:
        """The dimensions of one sample; [] is one number per sample."""
        value = self.any(key, default)
        if not isinstance(value, list | tuple) or not all(is_int(v) and v >= 1 for v in value):
            self.refuse(key, "a list of dimensions like [3, 224, 224]", value)
        return tuple(value)

    def integers(self, key: str, default: tuple[int, ...] = REQUIRED) -> tuple[int, ...]:
        """A list of whole numbers of either sign."""
        value = self.any(key, default)
        if not isinstance(value, list | tuple) or not all(is_int(v) for v in value):
            self.refuse(key, "a list of whole numbers", value)
        return tuple(value)

    def flag(self, key: str, default: bool = REQUIRED) -> bool:
        """True or false."""
        value: object = self.any(key, default)
        if not isinstance(value, bool):
            self.refuse(key, "true or false", value)
        return value

    def text(self, key: str, default: str = REQUIRED, *, choices: tuple[str, ...] = ()) -> str:
        """A text, one of `choices` where these are given."""
        value: object = self.any(key, default)
        if not isinstance(value, str) or (choices and value not in choices):
            self.refuse(key, f"one of {', '.join(choices)}" if choices else "text", value)
        return value

    def texts(self, key: str, default: tuple[str, ...] = REQUIRED) -> tuple[str, ...]:
        """A text or a list of texts."""
        value = self.any(key, default)
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
            self.refuse(key, "a name or a list of names", value)
        return tuple(value)

    def tables(self, key: str) -> list[Mapping[str, Any]]:
        """A list of tables."""
        value = self.any(key)
        if not isinstance(value, list) or not all(isinstance(v, Mapping) for v in value):
            self.refuse(key, "a list of tables", value)
        return list(value)

    def refuse(self, key: str, expected: str, value: object) -> NoReturn:
        """Raise an error: what the key must be and what it is."""
        raise PlacedError(self.place, f"{key!r} must be {expected}, got {value!r}")

    def done(self) -> None:
        """Refuse keys that were not read."""
        for key in self._entry:
            if key not in self._read_keys:
                near = get_close_matches(str(key), self._read_keys, n=3, cutoff=0.6)
                offer = f"near: {', '.join(near)}" if near else f"known: {', '.join(sorted(self._read_keys))}"
                raise PlacedError(self.place, f"no key {key!r}; {offer}")
