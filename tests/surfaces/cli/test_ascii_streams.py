"""What a terminal without our signs gets."""

import os
import subprocess
import sys

import pytest

from epochcast.surfaces.cli.ascii_streams import plain_text, wants_ascii

PLACES = {"LC_ALL": "", "LC_CTYPE": "", "LANG": ""}


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("161 ms   109 ms … 413 ms", "161 ms   109 ms - 413 ms"),
        ("8 × V100 · 7 µs ─── ▸", "8 x V100 | 7 us --- >"),
        ("model.fit(…)", "model.fit(...)"),
        ("café α", "cafe ?"),
        ("plain", "plain"),
    ],
)
def test_signs_have_a_plain_form_of_the_same_width(text: str, plain: str) -> None:
    assert plain_text(text) == plain
    assert len(plain) == len(text) + 2 * text.count("(…)")


@pytest.mark.parametrize(
    ("environment", "encoding", "wanted"),
    [
        ({"LANG": "C"}, "utf-8", True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, "utf-8", True),  # as Python itself sets it
        ({"LC_ALL": "POSIX", "LANG": "de_DE.UTF-8"}, "utf-8", True),
        ({"LC_ALL": "C.UTF-8", "LANG": "C"}, "utf-8", False),
        ({"LANG": "en_US.UTF-8"}, "utf-8", False),
        ({}, "utf-8", False),
        ({"LANG": "en_US.UTF-8"}, "ascii", True),
        ({"LANG": "en_US"}, "latin-1", True),
    ],
)
def test_the_locale_or_the_stream_asks_for_it(environment: dict[str, str], encoding: str, wanted: bool) -> None:
    assert wants_ascii(environment, encoding) is wanted


@pytest.mark.parametrize("asked", [{"LANG": "C"}, {"LC_ALL": "C"}, {"LANG": "C.UTF-8", "PYTHONIOENCODING": "ascii"}])
@pytest.mark.parametrize(
    "line", ["forecast resnet18 --device V100 --batch 8", "inspect --help", "forecast train…py --device V100 --batch 8"]
)
def test_commands_print_ascii_alone(asked: dict[str, str], line: str) -> None:
    environment = {**os.environ, **PLACES, "PYTHONIOENCODING": "", **asked}
    environment = {name: value for name, value in environment.items() if value}
    command = [sys.executable, "-m", "epochcast", *line.split()]
    ran = subprocess.run(command, capture_output=True, env=environment, timeout=120, check=False)
    assert (ran.stdout + ran.stderr).isascii()
    assert b"Traceback" not in ran.stderr
    assert ran.returncode == (2 if "train" in line else 0)
