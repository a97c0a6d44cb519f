"""A rule over rows names every row that breaks it."""

import pytest

from tests.every import every


def test_all_rows_that_break_the_rule_are_named() -> None:
    @every("number", [1, 2, 3, 4])
    def rule(number: int) -> None:
        assert number % 2 == 1, "even"

    with pytest.raises(AssertionError, match=r"(?s)^2 of 4:\n2: AssertionError: even.*\n4: AssertionError: even"):
        rule()


def test_another_error_names_its_row_too() -> None:
    @every(("number", "divisor"), [(1, 1), (1, 0)], ids=lambda row: f"{row[0]}/{row[1]}")
    def rule(number: int, divisor: int) -> None:
        assert number / divisor == 1

    with pytest.raises(AssertionError, match="1 of 2:\n1/0: ZeroDivisionError: division by zero"):
        rule()


def test_a_row_that_does_not_raise_is_named() -> None:
    @every("text", ["one", "2"])
    def rule(text: str) -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            int(text)

    with pytest.raises(AssertionError, match="1 of 2:\n2: Failed: DID NOT RAISE"):
        rule()


@every("number", [1, 3])
def test_fixtures_are_passed_on_and_rows_are_not_taken_for_them(number: int, request: pytest.FixtureRequest) -> None:
    assert request.node.name == "test_fixtures_are_passed_on_and_rows_are_not_taken_for_them"
    assert number % 2 == 1


def test_a_rule_without_rows_is_refused() -> None:
    with pytest.raises(AssertionError, match="no rows for number: the rule would check nothing"):
        every("number", [])
