from math import inf, nan
from typing import Any

import pytest

from epochcast.errors import BadInput
from epochcast.measure.tables.cells import above_zero, count, flag, needed, number, text


@pytest.mark.parametrize(
    ("cell", "found"), [(3, 3.0), ("3.5", 3.5), (" 7 ", 7.0), (None, None), ("", None), ("N/A", None)]
)
def test_a_number_may_be_text_or_missing(cell: Any, found: float | None) -> None:
    assert number({"a": cell}, "a") == found


@pytest.mark.parametrize("cell", ["many", "3 GPUs", nan, inf, "nan", True, [1], {"b": 1}])
def test_a_word_among_numbers_is_refused_with_its_column(cell: Any) -> None:
    with pytest.raises(BadInput, match=r"^gpus must be a "):
        number({"gpus": cell}, "gpus")


def test_counts_are_whole_and_zero_is_none() -> None:
    assert [count({"a": cell}, "a") for cell in (None, 0, "8", 8.0)] == [None, None, 8, 8]
    for cell in (1.5, -2, 0.25):
        with pytest.raises(BadInput, match="a must be a whole number of at least 1"):
            count({"a": cell}, "a")


def test_what_is_needed_must_be_there_and_above_zero() -> None:
    assert needed({"a": "2"}, "a") == 2
    with pytest.raises(BadInput, match=r"^no a$"):
        needed({}, "a")
    with pytest.raises(BadInput, match="a must be above 0, got -1"):
        above_zero({"a": -1}, "a")


def test_flags_and_words() -> None:
    assert [flag({"a": cell}, "a") for cell in (True, "False", "yes", 0, None, "")] == [
        True,
        False,
        True,
        False,
        None,
        None,
    ]
    with pytest.raises(BadInput, match="a must be true or false, got 'perhaps'"):
        flag({"a": "perhaps"}, "a")
    assert (text({"a": " x "}, "a"), text({}, "a")) == ("x", "")
