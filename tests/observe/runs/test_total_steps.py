import pytest

from epochcast.errors import BadInput
from epochcast.observe.runs.run_history import History
from epochcast.observe.runs.total_steps import check_total, total_of


def test_what_is_given_counts_first() -> None:
    total = total_of(History(total_steps=500.0), 700)
    assert (total.steps, total.source) == (700, "given")


def test_epochs_and_their_length_make_a_total_and_say_so() -> None:
    total = total_of(History(total_epochs=12.0, steps_per_epoch=100.0))
    assert (total.steps, total.is_inferred) == (1200, True)
    assert "12 epochs of 100 steps" in total.source


def test_a_log_that_counts_epochs_alone_is_counted_in_epochs() -> None:
    assert total_of(History(step=3.0, epoch=3.0, total_epochs=20.0)).steps == 20


def test_steps_per_epoch_follow_from_where_the_run_is() -> None:
    assert total_of(History(step=5000.0, epoch=2.0, total_epochs=10.0)).steps == 25_000


def test_a_given_total_below_the_step_of_the_log_is_refused_with_one_that_would_do() -> None:
    check_total(History(step=80.0), 80)
    with pytest.raises(
        BadInput, match=r"`total` 79: the log has already reached step 80; give the number of steps in all$"
    ):
        check_total(History(step=80.0), 79)
    with pytest.raises(BadInput, match="for 79 epochs of 100 steps give `epochs` 79 or `total` 7900"):
        check_total(History(step=300.0, epoch=4.0, steps_per_epoch=100.0), 79)
    with pytest.raises(BadInput, match="steps in all, or `epochs` 79"):
        check_total(History(step=300.0, epoch=4.0), 79)
    with pytest.raises(BadInput, match="step 300 of 990; leave `total` out"):
        check_total(History(step=300.0, total_steps=990.0), 79)


def test_nothing_told_is_asked_for() -> None:
    with pytest.raises(BadInput, match="give `total`"):
        total_of(History(step=300.0))


def test_no_total_below_zero() -> None:
    with pytest.raises(BadInput, match="above 0"):
        total_of(History(), -1)


# 79 epochs: of 100 steps as the log says; of 300 / 4 = 75 as far as it has come.
@pytest.mark.parametrize(
    ("history", "steps"),
    [
        (History(step=300.0, epoch=3.0, steps_per_epoch=100.0), 7900),
        (History(step=300.0, epoch=4.0), 5925),
        (History(step=4.0, epoch=4.0), 79),
    ],
)
def test_given_epochs_are_counted_in_the_steps_of_the_log(history: History, steps: int) -> None:
    assert total_of(history, epochs=79).steps == steps


def test_epochs_of_a_log_that_knows_none_are_asked_for_in_steps() -> None:
    with pytest.raises(BadInput, match=r"does not say how many steps an epoch has .it is at step 300.; give `total`"):
        total_of(History(step=300.0), epochs=79)
    with pytest.raises(BadInput, match="`epochs` must be a number above 0"):
        total_of(History(step=300.0), epochs=-1)
