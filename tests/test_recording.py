"""The picture of a terminal shows commands of the guide with what they print now; `pytest --renew` draws it again."""

import html
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from training.pictures import FOLDER, PICTURES, step_timeline
from training.recording import PICTURE, RECORDED, recorded


def test_the_terminal_shows_what_commands_print(matches: Callable[[Path, str], None]) -> None:
    drawn = recorded()
    words = html.unescape(drawn).replace("\xa0", " ")
    assert all(f"epochcast {arguments}" in words for arguments in RECORDED)
    assert "90 % interval" in words and "verdict" in words
    matches(PICTURE, drawn)


def test_every_picture_of_an_explanation_is_made_by_make_pictures() -> None:
    pages = sorted((FOLDER.parent / "explanation").glob("*.md"))
    shown = {
        name for page in pages for name in re.findall(r"\(../pictures/([^)]+)\)", page.read_text(encoding="utf-8"))
    }
    assert shown - {"track-fan.svg"} == set(PICTURES), "track-fan.svg is of `python -m studies track`"
    assert all((FOLDER / name).exists() for name in PICTURES)


def test_the_timeline_of_a_step_is_that_of_its_forecast() -> None:
    values = step_timeline().to_dict()["data"]["values"]
    kernels = [bar for bar in values if bar["stream"] == "kernels"]
    assert [before["to"] for before in kernels[:-1]] == pytest.approx([after["from"] for after in kernels[1:]])
    exchanged = max(bar["to"] for bar in values if bar["stream"] == "exchange")
    (wait,) = [bar for bar in kernels if bar["part"] == "waiting for other GPUs"]
    assert wait["to"] >= 0.9 * exchanged > wait["from"]
