"""What a change does: the numbers side by side, the layers responsible, what exceeds a limit, notes."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.decide.diff.change_limits import percent, signed
from epochcast.decide.diff.diff_answer import Diff
from epochcast.decide.diff.layer_changes import OVERALL, SAME, LayerChange
from epochcast.interval import Interval
from epochcast.predict.forecast.forecast import Forecast
from epochcast.surfaces.render.answer_header import assumed, header
from epochcast.surfaces.render.notes_view import Notes
from epochcast.surfaces.render.table_parts import INTERVAL, table
from epochcast.units import show_bytes, show_count, show_dollars, show_seconds

MOST_LAYERS = 10
"""So many layers are shown; --json has them all."""

Row = tuple[str, str, str, str, str]


def diff(answer: Diff) -> RenderableType:
    """Tables, then sentences; one line where the change is not worth more."""
    if answer.is_quiet and answer.allowed.quiet_below is not None:
        below = percent(answer.allowed.quiet_below)
        return Text(f"{answer.base.name} → {answer.head.name}: time, cost and memory change by less than {below}")
    sides = answer.base.forecast, answer.head.forecast
    title = f"{answer.base.name} → {answer.head.name}, {sides[1].gpus} × {sides[1].device}"
    pieces: list[RenderableType] = [
        table(
            header([title], *sides, between=" → "),
            "| > base | > head | > change | > how sure",
            number_rows(answer),
            f"how sure: the {INTERVAL} of the change" + ("" if answer.is_paired else ", errors do not cancel"),
        )
    ]
    pieces += assumed(*sides)
    if answer.layers:
        pieces.append(table("layers responsible", "layer | what | > step | > share", layer_rows(answer)))
    for name, (before, after) in answer.settings.items():
        pieces.append(Text(f"{name}: {before} → {after}"))
    pieces.append(Text(answer.verdict, style="bold"))
    if answer.is_comparable:
        pieces += [Text(f"exceeded: {limit.sentence}", style="bold red") for limit in answer.exceeded]
    pieces.append(Notes(answer.warnings))
    return Group(*pieces)


def number_rows(answer: Diff) -> list[Row]:
    """Name, base, head, change and interval of every number that both sides have."""
    return [*_interval_rows(answer), *_exact_rows(answer)]


def _interval_rows(answer: Diff) -> Iterator[Row]:
    base, head = answer.base.forecast, answer.head.forecast
    shown: tuple[tuple[str, Interval | None, Callable[[Forecast], Interval | None], Callable[[float], str]], ...] = (
        ("step", answer.step_seconds, lambda each: each.step_seconds, show_seconds),
        ("job", answer.total_seconds, lambda each: each.total_seconds, show_seconds),
        ("cost", answer.dollars, lambda each: each.dollars, show_dollars),
        ("peak memory", answer.peak_bytes, lambda each: each.peak_bytes, show_bytes),
    )
    for name, change, number, show in shown:
        before, after = number(base), number(head)
        if change is None or before is None or after is None:
            continue
        sure = "exact" if change.low == change.high else f"{signed(change.low - 1)} … {signed(change.high - 1)}"
        yield name, show(before.mid), show(after.mid), signed(change.mid - 1), sure


def _exact_rows(answer: Diff) -> Iterator[Row]:
    base, head = answer.base.forecast, answer.head.forecast
    shown: tuple[tuple[str, float | None, Any, Any], ...] = (
        ("parameters", answer.parameters, base.parameters, head.parameters),
        ("flops per sample", answer.flops_per_sample, base.flops_per_sample, head.flops_per_sample),
    )
    for name, change, before, after in shown:
        if change is not None:
            yield name, show_count(before), show_count(after), signed(change - 1), "exact"


def layer_rows(answer: Diff) -> list[tuple[str, str, str, str]]:
    """The layers with the largest changes, and the others in one row; many layers are taken together by their block."""
    groups = _blocks(answer.layers)
    rows = [_layer_row(name, status, changes) for (name, status), changes in groups[:MOST_LAYERS]]
    others = [change for _, changes in groups[MOST_LAYERS:] for change in changes]
    return [*rows, *([_layer_row(f"{len(others)} other layers", "", others)] if others else [])]


Block = tuple[tuple[str, str], list[LayerChange]]


def _blocks(changes: Sequence[LayerChange]) -> list[Block]:
    """Layers by the parts of their names before a dot: the most parts with which no more than MOST_LAYERS are left."""
    most = max((change.name.count(".") + 1 for change in changes), default=1)
    for parts in range(most, 0, -1):
        groups: dict[tuple[str, str], list[LayerChange]] = {}
        for change in changes:
            groups.setdefault((_block(change.name, parts), change.status), []).append(change)
        if len(groups) <= MOST_LAYERS:
            break
    return sorted(groups.items(), key=lambda group: -abs(sum(change.seconds_change for change in group[1])))


def _block(name: str, parts: int) -> str:
    begin = name.split(".")
    return name if len(begin) <= parts else ".".join([*begin[:parts], "*"])


def _layer_row(name: str, status: str, changes: Sequence[LayerChange]) -> tuple[str, str, str, str]:
    remark = "" if status in (OVERALL, SAME) else status
    remark += f" ({len(changes)} layers)" if len(changes) > 1 else ""
    share = None if changes[0].share is None else sum(change.share or 0.0 for change in changes)
    return name, remark.strip(), _signed_seconds(sum(change.seconds_change for change in changes)), _share(share)


def _share(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def _signed_seconds(seconds: float) -> str:
    return f"{'+' if seconds > 0 else '-'}{show_seconds(abs(seconds))}" if seconds else "±0"
