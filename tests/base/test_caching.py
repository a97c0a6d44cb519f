import copy
import pickle
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from threading import Barrier, Thread
from typing import Any

import pytest

from epochcast.base.caching import Cache, derived_property, remembered


def test_an_answer_is_made_once() -> None:
    asked: list[int] = []
    cache: Cache[str, int] = Cache(4)

    def make() -> int:
        asked.append(1)
        return 7

    assert [cache.get("a", make) for _ in range(3)] == [7, 7, 7]
    assert asked == [1]


def test_the_oldest_answer_is_forgotten_beyond_the_bound() -> None:
    cache: Cache[int, int] = Cache(2)
    for number in (1, 2, 3):
        cache.get(number, lambda number=number: number)  # type: ignore[misc]
    assert len(cache) == 2
    assert cache.get(1, lambda: -1) == -1  # made again
    assert cache.get(3, lambda: -3) == 3


def test_an_answer_that_raises_is_not_kept() -> None:
    cache: Cache[str, int] = Cache(2)
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 // 0)
    assert cache.get("a", lambda: 7) == 7


def test_copies_and_pickles_begin_empty() -> None:
    cache: Cache[str, int] = Cache(3)
    cache.get("a", lambda: 1)
    for other in (copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        assert len(other) == 0
        assert other.bound == 3


def test_a_bound_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one answer"):
        Cache(0)


def test_eight_threads_get_the_same_object() -> None:
    cache: Cache[str, object] = Cache(1)
    answers: list[object] = []
    start = Barrier(8)

    def ask() -> None:
        start.wait()
        answers.append(cache.get("a", object))

    threads = [Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, answers))) == 1


def test_a_remembered_function_keeps_its_name_and_tells_options_apart() -> None:
    asked: list[tuple[int, int]] = []

    @remembered(8)
    def power(base: int, exponent: int = 2) -> int:
        """base ** exponent"""
        asked.append((base, exponent))
        return int(base**exponent)

    assert [power(3), power(3, exponent=3), power(3)] == [9, 27, 9]
    assert asked == [(3, 2), (3, 3)]
    assert (getattr(power, "__name__"), power.__doc__) == ("power", "base ** exponent")  # noqa: B009


def test_two_caches_may_ask_each_other_from_two_threads() -> None:
    """Neither lock is held while an answer is made: a template asks a trace and a trace its template."""
    one, other = Cache[str, int](1), Cache[str, int](1)
    both_inside = Barrier(2, timeout=10)
    answers: list[int] = []

    def ask(first: Cache[str, int], second: Cache[str, int]) -> None:
        def make() -> int:
            both_inside.wait()
            return second.get("inner", lambda: 3)

        answers.append(first.get("outer", make))

    threads = [Thread(target=ask, args=pair, daemon=True) for pair in ((one, other), (other, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert answers == [3, 3]


@dataclass(frozen=True)
class Circle:
    radius: int
    derived: Cache[Hashable, Any] = field(init=False, compare=False, repr=False, default_factory=lambda: Cache(2))

    @derived_property
    def squared(self) -> list[int]:
        """radius²"""
        return [self.radius**2]


def test_a_derived_property_is_computed_once_and_not_inherited_by_a_changed_copy() -> None:
    circle = Circle(3)
    assert circle.squared is circle.squared
    assert replace(circle, radius=4).squared == [16]
    assert circle == Circle(3)
    assert Circle.squared.__doc__ == "radius²"
