"""The same logs with the parser of their own format left out: what an unknown format would meet."""

from collections.abc import Callable
from pathlib import Path

from epochcast.observe.logs.format_recognition import Recogniser
from epochcast.observe.logs.formats.format_table import FORMATS
from epochcast.observe.logs.log_reader import Log, LogReader, stream

# Formats that read many trainers: what is left when an own parser is missing.
GENERAL = frozenset(("python_logging", "tqdm", "jsonl", "csv"))


def own_format(name: str) -> str | None:
    """The format behind a flavour; None where it is a general one or no format of lines."""
    own = {"keras3": "keras", "keras_bar": "keras", "keras_verbose2": "keras"}.get(name, name)
    return own if own in {known.name for known in FORMATS} and own not in GENERAL else None


def reader_without(name: str) -> Callable[[Path], Log]:
    """Reads a log by all formats but this one."""

    def read(path: Path) -> Log:
        reader = LogReader(recogniser=Recogniser(tuple(known for known in FORMATS if known.name != name)))
        found = [seen for part in stream(path, reader) for seen in part]
        assert reader.recognition is not None
        return Log(path, reader.recognition, tuple(found), reader.started_at_seconds)

    return read
