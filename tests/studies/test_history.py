from studies.history.curves import Point, curve_section, read_curves
from studies.history.page import PAGE, Line, cases, page
from studies.history.run import read


def line(model: str, mape: float | None, split: str = "batch>60%") -> Line:
    return Line("ours", split, 100, model, "yes", 40, mape, mape, mape, 0.9)


def test_the_page_is_that_of_the_result() -> None:
    assert page(read(), read_curves()) == PAGE.read_text(encoding="utf-8")


def test_half_of_the_best_peer_is_asked_beyond_what_was_learned_from() -> None:
    (beyond,) = cases([line("grey_box", 0.11), line("net", 0.2), line("linear", 0.3), line("boosting", None)])
    (at_random,) = cases([line("grey_box", 0.11, "random"), line("net", 0.2, "random")])
    assert (beyond.peer.model, beyond.is_reached, at_random.is_reached) == ("net", False, True)


def test_a_miss_is_told_before_anything_else() -> None:
    told = page([line("grey_box", 0.3), line("net", 0.2), line("forecast", 0.1)], [])
    assert "Half of the best peer** is missed on 1 of 1" in told and "Worse than the best peer** on 1 of 1" in told
    assert told.index("## What fails") < told.index("## The grey box against the best peer")


def test_history_beats_the_forecast_from_where_it_stays_better() -> None:
    errors = {10: (0.1, 0.3), 20: (0.3, 0.3), 40: (0.2, 0.1)}
    points = [Point("ours", jobs, "grey_box", ours) for jobs, (ours, _) in errors.items()]
    points += [Point("ours", jobs, "boosting", theirs) for jobs, (_, theirs) in errors.items()]
    points += [Point("ours", jobs, "forecast", 0.25) for jobs in errors]
    told = curve_section(points)
    assert "(trees) is better than the forecast times one factor from 40 jobs on, both together from 40 jobs on" in told
