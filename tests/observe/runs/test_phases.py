import numpy as np
import pytest

from epochcast.errors import BadInput
from epochcast.observe.runs.phases import Phases
from epochcast.observe.runs.remaining_time import remaining
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.run_history import History

GROWING = Phases.parse("0:1,500:2,1000:3")


def seen_until(step: int, pause_every: int = 0) -> History:
    """A second per step, two from step 500 on, three from step 1,000 on; a pause of a minute after every so many."""
    history, clock = History(), 0.25
    for n in range(step + 1):
        clock += (1 + (n > 500) + (n > 1000)) if n else 0.0
        if n % 10 == 0:
            history.add(Report(step=n, clock_seconds=clock))
        if pause_every and n and n % pause_every == 0:
            clock += 60.0
    return history


@pytest.mark.parametrize("step", [100, 400, 600, 900, 1200])
def test_what_is_known_to_grow_is_foreseen(step: int) -> None:
    left = remaining(seen_until(step), 1500, phases=GROWING).remaining_seconds.mid
    assert left == pytest.approx(GROWING.work(1500, step, 1500), rel=0.03)


def test_pauses_are_not_taken_for_work() -> None:
    told = remaining(seen_until(700, pause_every=100), 1500, phases=GROWING)
    # A pause is seen once the report after it has come: the one after step 700 is still to come.
    assert told.pause_seconds == pytest.approx(8 * 60, abs=65)
    assert told.remaining_seconds.mid == pytest.approx(300 * 2 + 500 * 3 + told.pause_seconds, rel=0.03)
    assert told.step_seconds == pytest.approx(2.0, rel=0.03)


def test_phases_in_parts_of_the_whole_are_those_in_steps() -> None:
    begins, ends = np.array([0.0, 450.0]), np.array([10.0, 550.0])
    parts = Phases.parse("0%:1,50%:2")
    assert parts.weigh(1000, begins, ends) == pytest.approx([1.0, 1.5])
    assert parts.work(1000, 0, 1000) == Phases.parse("0:1,500:2").work(1000, 0, 1000) == 1500


@pytest.mark.parametrize("text", ["", "5:1", "0:1,500", "0:0", "0:1,x:2", "0:-1", "0:1,500:nan"])
def test_phases_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="phases"):
        Phases.parse(text)


def test_phases_come_one_after_the_other() -> None:
    with pytest.raises(BadInput, match="one after the other"):
        Phases.parse("0:1,500:2,10%:3").work(1000, 0, 1000)
