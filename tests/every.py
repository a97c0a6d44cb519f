"""A rule over files or catalogue rows as one test: it checks every row and lists all that break the rule."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest

Test = Callable[..., None]


def every(
    names: str | tuple[str, ...], rows: Iterable[Any], ids: Callable[[Any], object] = str
) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize(names, rows, ids=ids)`, as one test: no row is left out after the first that fails.

    Rows share the test's fixtures, so a test whose rows would disturb each other stays parametrized.
    """
    several = isinstance(names, tuple)
    parameters = set(names if several else [names])
    cases = list(rows)
    assert cases, f"no rows for {names}: the rule would check nothing"

    def decorate(test: Test) -> Test:
        @wraps(test)
        def check(**fixtures: Any) -> None:
            broken: list[tuple[object, BaseException]] = []
            for row in cases:
                values = dict(zip(names, row, strict=True)) if several else {names: row}
                try:
                    test(**values, **fixtures)
                except (Exception, pytest.fail.Exception) as error:  # a skip is neither, and skips the test
                    broken.append((ids(row), error))
            if broken:
                lines = [f"{name}: {type(error).__name__}: {error}" for name, error in broken]
                raise AssertionError("\n".join([f"{len(broken)} of {len(cases)}:", *lines])) from broken[0][1]

        signature = inspect.signature(test)
        rest = [value for name, value in signature.parameters.items() if name not in parameters]
        check.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]  # what pytest reads
        return check

    return decorate
