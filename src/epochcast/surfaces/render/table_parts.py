"""What all tables on a terminal share: headings, shapes, rates and intervals."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from epochcast.interval import COVERAGE, Interval
from epochcast.surfaces.render.shown_notes import shown

Cells = Iterable[Sequence[str]]

UNBOUNDED = 10_000
"""Wider than any table: measured with it, nothing is folded."""

NARROWEST_TEXT = 12
"""Texts are folded to so many letters before a table gets wider than its terminal."""

GAP = 3
"""Between two columns."""

INTERVAL = f"{COVERAGE:.0%} interval".replace("%", " %")


def table(
    title: str, columns: str, rows: Cells, caption: str | None = None, *, drop: Sequence[str] = ()
) -> RenderableType:
    """A plain table under its title. `columns` are headings between bars; one that begins with ">" is for numbers.

    In a narrow terminal the columns of `drop` are hidden, one after another, and the table says which.
    """
    headings = tuple(Heading.of(heading) for heading in columns.split("|"))
    names = [heading.name for heading in headings]
    dropped = tuple(name for name in drop if name in names)
    return FittedTable(title, headings, tuple(tuple(row) for row in rows), caption, dropped)


@dataclass(frozen=True, slots=True)
class Heading:
    """The name of a column; numbers stand on the right and are never folded."""

    name: str
    is_number: bool

    @classmethod
    def of(cls, text: str) -> "Heading":
        """Of its text: "> batch" is for numbers."""
        return cls(text.strip().removeprefix(">").strip(), text.strip().startswith(">"))


@dataclass(frozen=True)
class FittedTable:
    """A table with as many of its columns as the terminal is wide enough for."""

    title: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str | None
    drop: tuple[str, ...]

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width = self._natural(console, options, 0)
        return Measurement(width if shown().all_columns else self._least(len(self.drop)), width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        left_out = self._left_out(console, options)
        # The table's own title and caption would be folded to its width.
        yield Text(self.title, style="bold")
        yield self._table(left_out)
        if left_out:
            hint = shown().columns_hint and f" ({shown().columns_hint} shows all)"
            yield Text(f"hidden to fit the terminal: {'; '.join(self.drop[:left_out])}{hint}", style="dim")
        if self.caption is not None:
            yield Text(self.caption, style="dim")

    def _left_out(self, console: Console, options: ConsoleOptions) -> int:
        """How many of `drop`: the fewest that need no folded text; text is folded only where all of them are hidden."""
        counts = range(len(self.drop) + 1)
        unfolded = (count for count in counts if self._natural(console, options, count) <= options.max_width)
        return next(unfolded, len(self.drop))

    def _natural(self, console: Console, options: ConsoleOptions, left_out: int) -> int:
        """The width with which nothing is folded."""
        return Measurement.get(console, options.update(width=UNBOUNDED), self._table(left_out)).maximum

    def _least(self, left_out: int) -> int:
        """The width with which numbers are whole and texts are folded to a few letters."""
        widths = [
            self._widest(place) if self.headings[place].is_number else min(self._widest(place), NARROWEST_TEXT)
            for place in self._shown(left_out)
        ]
        return sum(widths) + GAP * len(widths) + 1

    def _widest(self, place: int) -> int:
        return max(cell_len(cell) for cell in (self.headings[place].name, *(row[place] for row in self.rows)))

    def _shown(self, left_out: int) -> list[int]:
        return [place for place, heading in enumerate(self.headings) if heading.name not in self.drop[:left_out]]

    def _table(self, left_out: int) -> Table:
        shown = self._shown(left_out)
        drawn = Table(box=box.SIMPLE_HEAD, show_header=any(heading.name for heading in self.headings))
        for place in shown:
            heading = self.headings[place]
            drawn.add_column(
                heading.name,
                min_width=self._widest(place) if heading.is_number else None,
                justify="right" if heading.is_number else "left",
                overflow="fold",
                no_wrap=heading.is_number,
            )
        for row in self.rows:
            drawn.add_row(*(Text(row[place]) for place in shown))
        return drawn


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
