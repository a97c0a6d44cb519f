"""What all tables on a terminal share: headings, shapes, rates and intervals."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from epochcast.interval import COVERAGE, Interval

Cells = Iterable[Sequence[str]]

INTERVAL = f"{COVERAGE:.0%} interval".replace("%", " %")


def table(title: str, columns: str, rows: Cells, caption: str | None = None) -> RenderableType:
    """A plain table under its title. `columns` are headings between bars; one that begins with ">" is for numbers."""
    headings = [heading.strip() for heading in columns.split("|")]
    rows = [tuple(row) for row in rows]
    rich_table = Table(box=box.SIMPLE_HEAD, show_header=any(heading.strip("> ") for heading in headings))
    for index, heading in enumerate(headings):
        is_number = heading.startswith(">")
        name = heading.removeprefix(">").strip()
        rich_table.add_column(
            name,
            min_width=max(cell_len(cell) for cell in (name, *(row[index] for row in rows))) if is_number else None,
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=is_number,
        )
    for row in rows:
        rich_table.add_row(*(Text(cell) for cell in row))
    # The table's own title and caption would be folded to its width.
    return Group(Text(title, style="bold"), rich_table, *([] if caption is None else [Text(caption, style="dim")]))


@dataclass(frozen=True)
class WideOrNarrow:
    """Draws `wide` where the terminal is wide enough for it, otherwise `narrow`."""

    wide: RenderableType
    narrow: RenderableType

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self.narrow)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        needed_width = Measurement.get(console, options.update(width=10 * width), self.wide).maximum
        yield self.wide if needed_width <= width else self.narrow


def shape(sizes: Sequence[int]) -> str:
    """3×224×224; 1 for a scalar."""
    return "×".join(map(str, sizes)) or "1"


def rate(per_second: float) -> str:
    """Samples per second, three digits or more."""
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.3g}"


def speed(samples_per_second: float, fed: str | None, tokens_per_sample: float | None) -> tuple[str, str]:
    """Throughput and its unit: tokens of a language model, images, or samples of anything else."""
    if tokens_per_sample is not None:
        return rate(samples_per_second * tokens_per_sample), "tokens/s"
    return rate(samples_per_second), "images/s" if fed == "images" else "samples/s"


def interval_cells(interval: Interval, show: Callable[[float], str]) -> tuple[str, str]:
    """The middle, and the ends where there are two."""
    if interval.low == interval.high:
        return show(interval.mid), ""
    return show(interval.mid), f"{show(interval.low)} … {show(interval.high)}"
