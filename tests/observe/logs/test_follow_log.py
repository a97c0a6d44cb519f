"""`ec.follow`: how a run stands, while its log grows."""

from pathlib import Path

import pytest

import epochcast as ec

PATTERN = r"step (?P<step>\d+)/(?P<total>\d+) took (?P<step_seconds>[\d.]+)s"


def lines(first: int, last: int) -> str:
    return "".join(f"step {step}/100 took 0.5s\n" for step in range(first, last + 1))


def test_standings_come_while_the_log_grows_and_end_with_the_run(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    following = ec.follow(log, pattern=PATTERN, poll_seconds=0.01)
    standings = []
    for first, last in ((1, 20), (21, 60), (61, 100)):
        with log.open("a") as file:
            file.write(lines(first, last))
        standings.append(next(following))
    assert list(following) == []
    assert [standing.step for standing in standings] == [20, 60, 100]
    assert [round(standing.remaining_seconds.mid) for standing in standings] == [40, 20, 0]
    assert [standing.is_done for standing in standings] == [False, False, True]
    assert all(standing.finish_at is not None for standing in standings)


def test_a_log_that_never_says_its_total_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {step} took 0.5s\n" for step in range(20)))
    pattern = r"step (?P<step>\d+) took (?P<step_seconds>[\d.]+)s"
    with pytest.raises(ec.BadInput, match="how many steps"):
        next(ec.follow(log, pattern=pattern))
    assert next(ec.follow(log, pattern=pattern, total=40)).total_steps == 40
