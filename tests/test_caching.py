import copy
import pickle
from threading import Barrier, Thread

import pytest

from epochcast.caching import Cache, remembered


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
