"""What `advise` is asked beside its job. Flags, keywords of `ec.advise` and the web API follow from the fields."""

from dataclasses import dataclass

from epochcast.base.options import Option, check_fields, option, options_of
from epochcast.errors import UnknownName
from epochcast.units import parse_rate, parse_size

RULES = ("exact", "thesis")


def _is_thesis(text: str) -> bool:
    if text not in RULES:
        raise UnknownName("rule", text, RULES)
    return text == "thesis"


@dataclass(frozen=True, kw_only=True)
class AdviseRequest:
    """The host that loads the data, and how far to search."""

    host_memory_bytes: float | None = option(
        None, "Memory of a node, like 128GiB.", unit="bytes", above=0, parse=parse_size, flag="--host-memory"
    )
    disk_bytes_per_second: float | None = option(
        None,
        "How fast a node reads from disk, like 500MB/s (default: no limit).",
        unit="bytes per second",
        above=0,
        parse=parse_rate,
        flag="--disk",
    )
    with_thesis: bool = option(
        False,
        "exact, or thesis: also show the thesis' formulas.",
        parse=_is_thesis,
        default_text="exact",
        flag="--rule",
    )
    most_batch: int | None = option(None, "No larger batch than this per GPU.", least=1, flag="--max-batch")

    def __post_init__(self) -> None:
        check_fields(self, ADVISE_OPTIONS)


ADVISE_OPTIONS: tuple[Option, ...] = options_of(AdviseRequest)
