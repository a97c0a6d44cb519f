from epochcast.observe.logs.formats.sighting import Sighting
from epochcast.observe.logs.run_course import Course


def test_a_run_counted_in_epochs_stays_so_when_a_line_tells_their_length() -> None:
    """Five epochs end before the first line within one says that an epoch has 200 batches."""
    course = Course()
    sightings = [Sighting(epochs_done=n, epochs=80, stamp_seconds=40.0 * n) for n in range(1, 6)]
    sightings.append(Sighting(epoch=5, batch=100, batches=200, stamp_seconds=220.0))
    sightings.append(Sighting(epochs_done=6, stamp_seconds=240.0))
    placed = [seen for one in sightings if (seen := course.place(one)) is not None]
    assert [seen.step for seen in placed] == [1, 2, 3, 4, 5, 5.5, 6]
    assert {seen.total_steps for seen in placed} == {80}
    assert {seen.steps_per_epoch for seen in placed} == {None}
    assert placed[-1].attempt == 0


def test_steps_after_the_last_report_of_an_epoch_take_time_too() -> None:
    """Half a second per step on average, a report every ten of a hundred steps, the last after 91."""
    course = Course()
    seen = [
        course.place(Sighting(epoch=epoch, batch=float(batch), batches=100.0, average_seconds=0.5))
        for epoch in range(3)
        for batch in range(1, 100, 10)
    ]
    last = seen[-1]
    assert last is not None
    assert (last.step, last.clock_seconds) == (291.0, 0.5 * 291)
