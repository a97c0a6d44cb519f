import ast
import copy
import pickle
import re
import tomllib
from pathlib import Path

import pytest

from epochcast.errors import (
    AmbiguousName,
    BadInput,
    DoesNotFit,
    EpochcastError,
    MissingExtra,
    UnknownDevice,
    UnknownModel,
    UnknownName,
    UnpublishedDevice,
)
from tests.every import every

MANY = [f"device{number}" for number in range(20)] + ["A100-80GB", "H100"]


def test_few_known_names_are_all_listed_in_order() -> None:
    error = UnknownName("all-reduce algorithm", "star", {"tree": 1, "ring": 2})
    assert str(error) == "no all-reduce algorithm called 'star'; known: ring, tree"


def test_among_many_names_the_near_ones_are_offered_in_their_own_spelling() -> None:
    assert str(UnknownName("device", "a100-80g", MANY)).startswith("no device called 'a100-80g'; near: A100-80GB")


def test_among_many_names_none_near_is_said() -> None:
    assert str(UnknownName("device", "§§§", MANY)) == "no device called '§§§'; nothing near among the 22 known"


def test_an_empty_catalogue_is_said_to_be_empty() -> None:
    assert str(UnknownName("profile", "mine", [])) == "no profile called 'mine'; none are known"


def test_names_may_come_from_an_iterator() -> None:
    assert str(UnknownName("link", "x", iter(["b", "a"]))) == "no link called 'x'; known: a, b"


def test_an_ambiguous_name_lists_what_it_could_be() -> None:
    error = AmbiguousName("device", "A100", ["A100-SXM", "A100-PCIe"])
    assert str(error) == "device 'A100' could be: A100-PCIe, A100-SXM; name one of them"


def test_a_missing_extra_says_what_to_install() -> None:
    assert str(MissingExtra("torch")) == "this needs torch; in the checkout of epochcast type: pip install '.[torch]'"
    assert (
        str(MissingExtra("fit", "polars"))
        == "this needs polars; in the checkout of epochcast type: pip install '.[fit]'"
    )


EVERY_ERROR = [
    UnknownName("device", "X", ["V100"]),
    UnknownDevice("X", ["V100"]),
    UnknownModel("nonet", ["nin"], "timm model"),
    UnpublishedDevice("X", "no public data sheet"),
    AmbiguousName("device", "A100", ["A100-SXM", "A100-PCIe"]),
    BadInput("batch must be at least 1, got 0"),
    MissingExtra("torch"),
    DoesNotFit("needs 20 GiB, the device has 16 GiB"),
]
every_error = every("error", EVERY_ERROR, ids=lambda error: type(error).__name__)


@every_error
def test_every_error_is_caught_as_ours_and_fits_on_one_line(error: EpochcastError) -> None:
    assert isinstance(error, EpochcastError)
    assert "\n" not in str(error)


@every_error
def test_exit_codes_are_the_contract(error: EpochcastError) -> None:
    assert error.exit_code == (4 if isinstance(error, DoesNotFit) else 2)


@every_error
def test_every_error_comes_back_whole_from_a_worker_process(error: EpochcastError) -> None:
    sent = copy.copy(error)
    sent.add_note("while forecasting 'resnet50' on 8xV100")
    received = pickle.loads(pickle.dumps(sent))
    assert type(received) is type(error)
    assert (str(received), received.about) == (str(error), error.about)
    assert received.__notes__ == ["while forecasting 'resnet50' on 8xV100"]


def test_bad_input_is_a_value_error_too() -> None:
    with pytest.raises(ValueError, match="got 0"):
        raise BadInput("batch must be at least 1, got 0")


ROOT = Path(__file__).parents[1]


def _extras() -> dict[str, set[str]]:
    """The packages of every extra of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = re.compile(r"[A-Za-z0-9._-]+")
    found = {
        extra: {match[0].casefold() for line in lines if (match := names.match(line))}
        for extra, lines in project["optional-dependencies"].items()
    }
    return {**found, "serve": found["serve"] | found["store"] | found["plot"]}


def test_the_extra_that_a_message_names_installs_the_package_that_is_missing() -> None:
    extras, wrong, seen = _extras(), [], 0
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "MissingExtra":
                continue
            extra, *package = [value.value if isinstance(value, ast.Constant) else None for value in node.args]
            if extra is None:
                continue  # read from the extras themselves, or from a table that is checked below
            seen += 1
            assert isinstance(extra, str)
            needed = str(extra if not package or package[0] is None else package[0]).casefold()
            if extra not in extras or (needed not in extras[extra] and (not package or package[0] is not None)):
                wrong.append(f"{path.name}:{node.lineno} {extra!r} {needed}")
    assert seen > 20
    assert wrong == []


def test_frameworks_that_a_users_file_imports_are_in_the_extra_that_is_named() -> None:
    from epochcast.describe.capture.torch.factory import EXTRAS

    extras = _extras()
    assert {n: e for n, e in EXTRAS.items() if not {n, f"{n}-cpu"} & extras[e]} == {}
