from datetime import UTC, datetime, timedelta

import pytest

from epochcast.decide.plan.deadline import deadline_seconds
from epochcast.errors import BadInput

NOW = datetime(2026, 11, 17, 9, 0, tzinfo=UTC)  # a Tuesday


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("6h", NOW + timedelta(hours=6)),
        ("+6h", NOW + timedelta(hours=6)),
        ("in 1h30m", NOW + timedelta(hours=1.5)),
        ("Friday 18:00", datetime(2026, 11, 20, 18, tzinfo=UTC)),
        ("by fri at 6pm", datetime(2026, 11, 20, 18, tzinfo=UTC)),
        ("friday", datetime(2026, 11, 21, tzinfo=UTC)),
        ("Tuesday 18:00", datetime(2026, 11, 17, 18, tzinfo=UTC)),
        ("tuesday 8:00", datetime(2026, 11, 24, 8, tzinfo=UTC)),
        ("tomorrow 12am", datetime(2026, 11, 18, tzinfo=UTC)),
        ("18:30", datetime(2026, 11, 17, 18, 30, tzinfo=UTC)),
        ("today", datetime(2026, 11, 18, tzinfo=UTC)),
        ("2026-11-20T18:00", datetime(2026, 11, 20, 18, tzinfo=UTC)),
        ("2026-11-20 18:00+02:00", datetime(2026, 11, 20, 16, tzinfo=UTC)),
        ("2026-11-20", datetime(2026, 11, 21, tzinfo=UTC)),
    ],
)
def test_deadlines_as_people_say_them(text: str, until: datetime) -> None:
    assert deadline_seconds(text, NOW) == (until - NOW).total_seconds()


@pytest.mark.parametrize("text", ["2026-11-16", "2026-11-17T08:59", "8:00", "today 8am"])
def test_a_deadline_in_the_past_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="is in the past: it is Tuesday 2026-11-17 09:00"):
        deadline_seconds(text, NOW)


@pytest.mark.parametrize(
    "text", ["soon", "friday 25:00", "2026-13-01", "13pm", "", "the day after", "+", "in", "in friday", "+18:00"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        deadline_seconds(text, NOW)
