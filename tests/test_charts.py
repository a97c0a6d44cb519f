from pathlib import Path

import pytest

from epochcast import charts
from epochcast.errors import BadInput

MEASURED, PREDICTED = [0.01, 0.1, 1.0], [0.012, 0.09, 1.5]


def scatter(groups: list[str] | None = None) -> object:
    return charts.predicted_against_measured(MEASURED, PREDICTED, groups or ["a", "a", "b"], "three rows")


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<svg"), ("html", b"<!DOCTYPE html>")])
def test_the_ending_decides_the_format(tmp_path: Path, ending: str, start: bytes) -> None:
    charts.save_chart(scatter(), tmp_path / f"chart.{ending}")
    assert (tmp_path / f"chart.{ending}").read_bytes().lstrip().startswith(start)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_page_needs_no_network(tmp_path: Path) -> None:
    charts.save_chart(scatter(), tmp_path / "chart.html")
    text = (tmp_path / "chart.html").read_text(encoding="utf-8")
    assert "<script src=" not in text
    assert len(text) > 100_000  # the scripts are inside


def test_the_picture_names_its_axes_and_groups(tmp_path: Path) -> None:
    charts.save_chart(scatter(), tmp_path / "chart.svg")
    text = (tmp_path / "chart.svg").read_text(encoding="utf-8")
    for words in ("measured, seconds", "predicted, seconds", "three rows", ">a<", ">b<"):
        assert words in text


def test_small_groups_share_a_colour() -> None:
    names = [f"family {i}" for i in range(12)]
    chart = charts.predicted_against_measured([1.0] * 13, [1.0] * 13, [*names, "family 0"], "many")
    assert charts.OTHERS in chart.to_json()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("chart.jpg", "cannot draw chart.jpg; known endings: .png, .svg, .html"),
        ("no/where/chart.png", "no folder "),
    ],
)
def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        charts.check_chart_path(tmp_path / name)
    assert str(caught.value).startswith(message)


def test_nothing_to_draw_says_so() -> None:
    with pytest.raises(BadInput, match="nothing to draw"):
        charts.predicted_against_measured([], [], [], "empty")
