"""A rule over files or catalogue rows as one test: it checks every row and lists all that break the rule."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest

Test = Callable[..., None]


def every(
    names: str | tuple[str, ...], rows: Iterable[Any], ids: Callable[[Any], object] | Iterable[object] = str
) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize(names, rows, ids=ids)`, but one test, which names every row that fails and why.

    Rows share the test's fixtures, so a test whose rows would disturb each other stays parametrized.
    """
    parameters = names if isinstance(names, tuple) else (names,)
    several = parameters is names
    cases = list(rows)
    labels = [ids(row) for row in cases] if callable(ids) else list(ids)
    assert cases, f"no rows for {names}: the rule would check nothing"

    def decorate(test: Test) -> Test:
        @wraps(test)
        def check(**fixtures: Any) -> None:
            broken: list[tuple[object, BaseException]] = []
            for label, row in zip(labels, cases, strict=True):
                values = dict(zip(parameters, row if several else [row], strict=True))
                try:
                    test(**values, **fixtures)
                except (Exception, pytest.fail.Exception) as error:  # a skip is neither, and skips the test
                    broken.append((label, error))
            if broken:
                head = f"{len(broken)} of {len(cases)}:"
                raise AssertionError("\n".join([head, *(_line(*each) for each in broken)])) from broken[0][1]

        signature = inspect.signature(test)
        rest = [value for name, value in signature.parameters.items() if name not in parameters]
        check.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]  # what pytest reads
        return check

    return decorate


def _line(label: object, error: BaseException) -> str:
    """With its notes, where hypothesis says which example fails."""
    return "\n".join([f"{label}: {type(error).__name__}: {error}", *getattr(error, "__notes__", [])])
