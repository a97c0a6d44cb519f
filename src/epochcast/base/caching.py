"""What was computed once and may be asked for again: one class with a bound and a lock.

A cache belongs to the object whose answers it keeps (a `Template`, a `Session`) or, where the answers depend on shipped
files alone, to the function that `remembered` wraps. Either way it forgets the oldest answer beyond its bound, and
threads that ask at once get the same object.

>>> squares: Cache[int, int] = Cache(2)
>>> [squares.get(n, lambda: n * n) for n in (2, 3, 2)], len(squares)
([4, 9, 4], 2)
"""

from collections.abc import Callable, Hashable
from functools import partial, update_wrapper
from threading import Lock
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Parameters = ParamSpec("Parameters")
Owner = TypeVar("Owner", bound="HasDerived")


class Cache(Generic[Key, Value]):
    """At most `bound` answers by key, the oldest forgotten first.

    A copy or a pickle of whoever owns it begins empty: what it holds can always be computed again.
    """

    __slots__ = ("_answers", "_lock", "bound")

    def __init__(self, bound: int) -> None:
        if bound < 1:
            raise ValueError(f"a cache keeps at least one answer, got a bound of {bound}")
        self.bound = bound
        self._answers: dict[Key, Value] = {}
        self._lock = Lock()

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """The answer for a key, made where it is not known. An answer that raises is not kept.

        The lock is not held while an answer is made, which may ask other caches: two threads may make the same answer,
        and both get the one that was kept first.
        """
        try:
            return self._answers[key]
        except KeyError:
            pass
        answer = make()
        with self._lock:
            if key not in self._answers:
                while len(self._answers) >= self.bound:
                    self._answers.pop(next(iter(self._answers)))
                self._answers[key] = answer
            return self._answers[key]

    def forget(self, key: Key) -> None:
        """Forget one answer."""
        with self._lock:
            self._answers.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._answers.clear()

    def __len__(self) -> int:
        return len(self._answers)

    def __reduce__(self) -> tuple[type["Cache[Any, Any]"], tuple[int]]:
        return Cache, (self.bound,)

    def __deepcopy__(self, memo: object) -> "Cache[Key, Value]":
        return Cache(self.bound)


Derived = Cache[Hashable, Any]
"""What follows from a thing, by what it is called: the type of a field `derived`."""


class Remembered(Generic[Parameters, Value]):
    """A function whose answers are kept by its arguments."""

    def __init__(self, function: Callable[Parameters, Value], bound: int) -> None:
        self.cache: Cache[Hashable, Value] = Cache(bound)
        self._function = function
        update_wrapper(self, function)

    def __call__(self, *arguments: Parameters.args, **options: Parameters.kwargs) -> Value:
        key = (arguments, tuple(sorted(options.items()))) if options else arguments
        try:  # what `get` does, without calling it: formulas are asked for thousands of times
            return self.cache._answers[key]
        except KeyError:
            return self.cache.get(key, lambda: self._function(*arguments, **options))


class HasDerived(Protocol):
    """Whoever keeps what follows from it in a field `derived`."""

    @property
    def derived(self) -> Derived:
        """What was asked for so far; a copy with another field begins with nothing."""
        ...


class derived_property(Generic[Owner, Value]):
    """A property that is computed once and kept in its owner's `derived`, under its own name."""

    def __init__(self, compute: Callable[[Owner], Value]) -> None:
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> "derived_property[Owner, Value]": ...

    @overload
    def __get__(self, owner: Owner, kind: type) -> Value: ...

    def __get__(self, owner: Owner | None, kind: type) -> "Value | derived_property[Owner, Value]":
        if owner is None:
            return self
        value: Value = owner.derived.get(self._name, partial(self._compute, owner))
        return value


def remembered(bound: int) -> Callable[[Callable[Parameters, Value]], Remembered[Parameters, Value]]:
    """Keep the answers of a pure function: catalogues, shipped models, formulas that are asked again and again."""

    def wrap(function: Callable[Parameters, Value]) -> Remembered[Parameters, Value]:
        return Remembered(function, bound)

    return wrap
