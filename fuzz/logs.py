"""Logs of running jobs with something wrong in them: lines of every format, event files, tables of numbers.

The shapes are those of the tests (`tests/observe/logs/shapes.py`): a few lines of each format.
"""

import re
import struct
from math import isnan
from pathlib import Path

from hypothesis import strategies as st

from fuzz.mutations import NUMBERS, damaged

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def log_texts() -> list[str]:
    """A few lines of every format."""
    from tests.observe.logs.shapes import SHAPES

    return [shape.text for shape in SHAPES]


def logs() -> st.SearchStrategy[bytes]:
    """Logs with other numbers, other orders of lines, lines of other formats between them, or damaged bytes."""
    texts = log_texts()
    changed = st.sampled_from(texts).flatmap(lambda text: _changed(text, texts))
    return st.one_of(changed, changed, st.sampled_from(texts).flatmap(lambda text: damaged(text.encode())))


@st.composite
def _changed(draw: st.DrawFn, text: str, texts: list[str]) -> bytes:
    for _ in range(draw(st.integers(1, 4))):
        lines = text.splitlines(keepends=True)
        match draw(st.sampled_from(["number", "number", "number", "twice", "reversed", "other", "lost"])):
            case "number":
                numbers = list(_NUMBER.finditer(text))
                if numbers:
                    at = numbers[draw(st.integers(0, len(numbers) - 1))]
                    text = text[: at.start()] + str(draw(NUMBERS)) + text[at.end() :]
            case "twice":
                text += text
            case "reversed":
                text = "".join(reversed(lines))
            case "other":
                text += draw(st.sampled_from(texts))
            case _:
                text = "".join(lines[:-1])
    return text.encode(errors="replace")


def event_files() -> st.SearchStrategy[bytes]:
    """TensorBoard's records with odd steps, clocks and values, some with damaged bytes."""
    row = st.tuples(st.sampled_from(["loss", "train/loss", "epoch", ""]), NUMBERS, NUMBERS, NUMBERS)
    whole = st.lists(row, min_size=1, max_size=12).map(_event_file)
    return st.one_of(whole, whole.flatmap(damaged))


def _event_file(rows: list[tuple[str, float, float, float]]) -> bytes:
    from tests.observe.logs.test_event_files import scalar_event

    return b"".join(
        scalar_event(tag, int(_finite(step)) % 2**63, _double(clock), _single(value))
        for tag, step, clock, value in rows
    )


def _finite(number: float) -> float:
    return 0.0 if abs(number) >= 10**300 or isnan(number) else number


def _double(number: float) -> float:
    return float("inf") if abs(number) >= 10**300 else float(number)


def _single(number: float) -> float:
    value = _double(number)
    try:
        struct.pack("<f", value)
    except OverflowError:
        return float("inf")
    return value


def tracked(folder: Path, content: bytes) -> None:
    """As `epochcast track` reads it, to its answer."""
    import json
    from datetime import UTC, datetime

    from epochcast.observe.logs.log_reader import LogReader, stream
    from epochcast.observe.runs.tracker import Tracker

    file = folder / "train.log"
    file.write_bytes(content)
    tracker, reader = Tracker(), LogReader()
    for part in stream(file, reader):
        tracker.add_all(part)
    standing = tracker.standing(datetime(2026, 1, 1, tzinfo=UTC))
    json.dumps(standing.as_dict(), allow_nan=False)
