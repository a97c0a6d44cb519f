"""What was looked up a moment ago: kept for some seconds, because another server may change it."""

import time
from collections import OrderedDict
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """At most `bound` values, each for `seconds`. For the event loop alone: it has no lock."""

    def __init__(self, bound: int, seconds: float) -> None:
        self._bound, self._seconds = bound, seconds
        self._kept: OrderedDict[Key, tuple[float, Value]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """The value, unless it is too old or was never put."""
        found = self._kept.get(key)
        if found is None:
            return None
        if time.monotonic() - found[0] > self._seconds:
            del self._kept[key]
            return None
        return found[1]

    def put(self, key: Key, value: Value) -> None:
        """Keep a value from now on."""
        self._kept.pop(key, None)
        self._kept[key] = time.monotonic(), value
        while len(self._kept) > self._bound:
            self._kept.popitem(last=False)
