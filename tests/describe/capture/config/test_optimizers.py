import pytest

from epochcast.describe.capture.config.optimizers import _ALIKE, _NAMES, match_optimizer
from epochcast.describe.graph.optimizer import OPTIMIZERS


@pytest.mark.parametrize(
    ("written", "ours"),
    [
        ("torch.optim.AdamW", "adamw"),
        ("adamw_torch", "adamw"),
        ("adamw_bnb_8bit", "adamw8bit"),
        ("FusedLAMB", "lamb"),
        ("RMSprop", "rmsprop"),
        ("SGD", "sgd"),
    ],
)
def test_names_of_frameworks_are_known(written: str, ours: str) -> None:
    optimizer = match_optimizer(written)
    assert (optimizer.name, optimizer.problem, optimizer.note) == (ours, "", "")


@pytest.mark.parametrize(
    ("momentum", "nesterov", "ours"),
    [(0.9, None, "momentum"), (0.9, True, "nesterov"), (0.0, None, "sgd"), (0, False, "sgd")],
)
def test_momentum_decides_what_sgd_is(momentum: float, nesterov: bool | None, ours: str) -> None:
    assert match_optimizer("SGD", momentum=momentum, nesterov=nesterov).name == ours


def test_what_is_taken_for_another_says_so() -> None:
    optimizer = match_optimizer("NAdam")
    assert optimizer.name == "adam"
    assert optimizer.note == "NAdam is taken as adam, which keeps as much state"


def test_an_unknown_one_has_near_names() -> None:
    optimizer = match_optimizer("Adamm")
    assert "no optimizer called 'Adamm'" in optimizer.problem
    assert "adam" in optimizer.problem


def test_the_tables_name_optimizers_that_there_are() -> None:
    assert set(_ALIKE.values()) <= set(OPTIMIZERS)
    assert not set(_ALIKE) & set(_NAMES)
