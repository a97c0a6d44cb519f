import pytest

from epochcast.errors import BadInput
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.standing import Standing
from epochcast.observe.runs.sweep import sweep
from epochcast.observe.runs.tracker import Tracker


def run(done: int, total: int = 1000) -> Standing:
    tracker = Tracker(total=total)
    tracker.add_all(Report(step=n, clock_seconds=n / 2) for n in range(0, done + 1, 10))
    return tracker.standing()


def test_running_trials_count_by_their_progress() -> None:
    whole = sweep([run(1000), run(500), run(250)])
    assert (whole.done, whole.running) == (1, 2)
    assert whole.fraction == pytest.approx((1 + 0.5 + 0.25) / 3)
    assert whole.remaining_seconds.mid == pytest.approx(375, rel=0.005)


def test_trials_to_come_wait_for_a_place() -> None:
    """Two run; four of 500 s each come after: (250 + 250 + 4·500)/2."""
    whole = sweep([run(500), run(500)], trials=6)
    assert whole.remaining_seconds.mid == pytest.approx(1250, rel=0.005)
    assert whole.fraction == pytest.approx(1 / 6)


def test_fewer_trials_than_runs_are_refused() -> None:
    with pytest.raises(BadInput, match="at least the 2 runs"):
        sweep([run(500), run(500)], trials=1)
