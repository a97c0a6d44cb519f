"""The line that `show=True` writes."""

from io import StringIO

from epochcast.observe.recording.progress_line import LiveLine
from epochcast.observe.recording.recorded_rows import AttemptStart, RecordedRow

START = AttemptStart("mine", 1, 1_700_000_000.0, total_steps=100)


def test_the_line_tells_how_long_still_and_is_drawn_over() -> None:
    screen = StringIO()
    line = LiveLine(screen)
    for first in (0, 20):
        rows = [RecordedRow(n, "train", n + 1, 2.0 * (n + 1), steps=1, seconds=2.0) for n in range(first, first + 20)]
        line.send(START, rows)
    drawn = screen.getvalue().split("\r")[1:]
    assert [text.split(",")[0] for text in drawn] == ["mine: 20%", "mine: 40%"]
    assert "step 40 of 100, 2 min 0 s left (" in drawn[1] and "ends " in drawn[1]
    assert "\n" not in screen.getvalue()


def test_before_anything_can_be_told_it_says_how_far() -> None:
    screen = StringIO()
    LiveLine(screen).send(AttemptStart("mine", 1, 0.0), [RecordedRow(0, "train", 1, 2.0, steps=1, seconds=2.0)])
    assert screen.getvalue() == "\rmine: step 1, 2 s so far"


def test_the_end_ends_the_line() -> None:
    screen = StringIO()
    line = LiveLine(screen)
    line.send(START, [RecordedRow(0, "train", 100, 60.0, steps=100, seconds=60.0), RecordedRow(1, "end", 100, 60.0)])
    assert screen.getvalue() == "\rmine: done after 60 s, 100 steps\n"
