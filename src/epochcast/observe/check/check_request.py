"""What `epochcast check` is asked besides the job."""

from dataclasses import dataclass
from re import fullmatch

from epochcast.base.options import check_fields, option, options_of, required
from epochcast.errors import BadInput


def _parse_tolerance(text: str) -> float:
    """1.5 of "1.5x" or "1.5"."""
    match = fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*[x×]?\s*", text.casefold())
    if match is None:
        raise BadInput(f"{text!r} is no factor; write it like 1.5x")
    return float(match[1])


@dataclass(frozen=True)
class CheckRequest:
    """The process that runs, and the limit of what is still taken as normal."""

    pid: int | None = option(
        None,
        "Number of a running process: reads its command line, its log, and its GPU through NVML.",
        least=1,
        example="4242",
    )
    tolerance: float | None = option(
        None,
        "Exit with code 3 if a step takes more than this factor of the forecast, like 1.5x.",
        above=0,
        most=1e6,
        parse=_parse_tolerance,
        example="1.5",
    )

    def __post_init__(self) -> None:
        check_fields(self, options_of(CheckRequest))


@dataclass(frozen=True)
class CheckQuestion:
    """What is asked over HTTP and by assistants, which name no files and no processes of the machine that answers."""

    observed: str = required(
        "A speed like 39s/it, 1.2it/s, '2.1k tokens/s' or 12min/epoch; or a progress bar or lines of a log.",
        example="1.2it/s",
    )
