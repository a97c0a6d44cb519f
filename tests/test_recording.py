"""The picture of a terminal shows commands of the guide with what they print now; `pytest --renew` draws it again."""

import html
from collections.abc import Callable
from pathlib import Path

from training.recording import PICTURE, RECORDED, recorded


def test_the_terminal_shows_what_commands_print(matches: Callable[[Path, str], None]) -> None:
    drawn = recorded()
    words = html.unescape(drawn).replace("\xa0", " ")
    assert all(f"epochcast {arguments}" in words for arguments in RECORDED)
    assert "90 % interval" in words and "verdict" in words
    matches(PICTURE, drawn)
