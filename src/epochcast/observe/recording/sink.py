"""Where rows go: the one protocol, and destinations by what the user wrote."""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, runtime_checkable

from epochcast.errors import BadInput, EpochcastError, MissingExtra
from epochcast.observe.recording.recorded_rows import AttemptStart, RecordedRow

# Destinations that are not written in the program, separated by commas; "off" records nothing.
DESTINATIONS = "EPOCHCAST_TRACK"


class ServerRefuses(EpochcastError):
    """A server is not there, or takes no reports. `status` is that of its answer, where it gave one."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


@runtime_checkable
class Sink(Protocol):
    """Takes rows, in a thread of its own; may fail and be slow."""

    name: str

    def send(self, start: AttemptStart, rows: Sequence[RecordedRow]) -> int:
        """Take the first of these and say how many. What cannot be taken now raises, and is sent again later.

        Without rows it only makes sure that the attempt is known.
        """


Destination = str | Path | Sink


def sinks(to: "Destination | Sequence[Destination] | None", start: AttemptStart) -> list[Sink]:
    """The sinks of a destination: a path, `http(s)://…`, `store`, a URL of a database, a sink, or several of these.

    Nothing given: those of EPOCHCAST_TRACK, or a file named after the job in the folder of the program.
    """
    if to is None:
        listed = os.environ.get(DESTINATIONS, "").strip()
        to = [part.strip() for part in listed.split(",") if part.strip()] or f"{_file_name(start.job)}.track.jsonl"
    destinations = list(to) if isinstance(to, Sequence) and not isinstance(to, str) else [to]
    return [_sink(destination, start) for destination in destinations if destination != "off"]


def _sink(destination: Destination, start: AttemptStart) -> Sink:
    if isinstance(destination, Sink):
        return destination
    if not isinstance(destination, str | Path):
        raise BadInput(f"`to` must be a path, a URL or a sink, got {type(destination).__name__}")
    text = str(destination)
    if isinstance(destination, str) and text.startswith(("http://", "https://")):
        from epochcast.observe.recording.report_spool import ReportSpool, spool_folder
        from epochcast.observe.recording.server_sink import ServerSink
        from epochcast.observe.recording.spooled_sink import SpooledSink

        server = ServerSink(text)
        return SpooledSink(server, ReportSpool(spool_folder(), server.name))
    if isinstance(destination, str) and (text == "store" or "://" in text):
        if find_spec("sqlalchemy") is None:
            raise MissingExtra("store", "SQLAlchemy")
        from epochcast.observe.recording.store_sink import StoreSink
        from epochcast.observe.store.store_location import database_url

        if text != "store":
            database_url(text)  # a kind of database that there is not is refused now
        return StoreSink(None if text == "store" else text)
    from epochcast.observe.recording.file_sink import FileSink

    path = Path(destination)
    if path.is_dir():
        raise BadInput(f"`to` must be a file, got the folder {path}")
    rank_path = path if start.rank == 0 else path.with_suffix(f".rank{start.rank}{path.suffix}")
    return FileSink(rank_path, continues=start.start_step > 0)


def _file_name(job: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in job)
