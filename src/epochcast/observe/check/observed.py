"""An observation in whatever form somebody has it: a typed speed, a log, pasted lines, a trace, a number of seconds."""

from dataclasses import replace
from pathlib import Path

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.observe.check.kineto_trace import is_trace, observed_trace
from epochcast.observe.check.observation import Observation
from epochcast.observe.check.observed_log import observed_file, observed_text
from epochcast.observe.check.observed_rate import read_rate

Observed = str | Path | float | Interval | Observation
PASTED = "the pasted text"
_LOG_ENDINGS = (".log", ".txt", ".out", ".err", ".json", ".jsonl", ".csv", ".gz")


def read_observed(observed: Observed) -> Observation:
    """The observation; a number and an interval are seconds per step."""
    match observed:
        case Observation():
            return observed
        case bool():
            raise BadInput(f"observed must be a speed, a file or pasted lines, got {observed!r}")
        case int() | float():
            return Observation(f"{observed:g} s/step", Interval.exact(float(observed)))
        case Interval():
            return Observation(f"{observed.mid:g} s/step", observed)
        case Path():
            return _of_file(observed)
        case str():
            return _of_text(observed)
    raise BadInput(f"observed must be a speed, a file or pasted lines, got {observed!r}")


def _of_file(path: Path) -> Observation:
    return observed_trace(path) if is_trace(path) else observed_file(path)


def _of_text(text: str) -> Observation:
    if "\n" not in text.strip():
        path = Path(text.strip())
        if _is_file(path):
            return _of_file(path)
        if path.suffix.casefold() in _LOG_ENDINGS and not text.strip().count(" "):
            raise BadInput(f"no file {text.strip()!r}")
    return read_typed(text)


def read_typed(text: str) -> Observation:
    """A speed or pasted lines; no file is read."""
    try:
        return read_rate(text)
    except BadInput as error:
        try:
            return replace(observed_text(text, PASTED), text=_last_line(text))
        except BadInput:
            raise error from None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a text that is no path at all
        return False


def _last_line(text: str, most: int = 60) -> str:
    """Of pasted lines, what an answer quotes."""
    line = " ".join(text.strip().replace("\r", "\n").splitlines()[-1].split())
    return line if len(line) <= most else f"…{line[-most:]}"
