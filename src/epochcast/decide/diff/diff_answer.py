"""The answer to `epochcast diff`: two sides and what changes between them, as ratios head ÷ base."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar

from epochcast.base.caching import Cache, Derived, derived_property
from epochcast.base.display import Displayed
from epochcast.base.frames import Framed
from epochcast.base.notes import Importance, Note, as_note
from epochcast.base.record import Record, paths
from epochcast.decide.diff.change_limits import ChangeLimits, Exceeded, exceeded, is_quiet, signed
from epochcast.decide.diff.diff_side import Side
from epochcast.decide.diff.layer_changes import LayerChange, layer_changes
from epochcast.decide.diff.paired_interval import differing, independent_change, like, step_change, unlikeness
from epochcast.interval import Interval

_SETTINGS = (
    *("device", "gpus", "nodes", "strategy", "precision", "weights", "offload", "optimizer", "mode", "framework"),
    *("attention", "compile", "batch_per_gpu", "global_batch", "accumulate", "augment", "lora", "dataset", "samples"),
    *("epochs", "sequence_length", "dollars_per_hour"),
)


@dataclass(frozen=True, slots=True)
class ChangeRatios(Record):
    """Ratios head ÷ base; None where one of the two is unknown."""

    step_seconds: Interval
    sample_seconds: Interval
    total_seconds: Interval | None
    peak_bytes: Interval | None
    dollars: Interval | None
    parameters: float | None
    flops_per_sample: float | None


@dataclass(frozen=True, repr=False)
class Diff(Displayed, Framed, Record):
    """What a change of a job does to its time, memory and cost. `notes` are what is to be known before believing it.

    `is_comparable` is False where the base was forecast by another version of epochcast or another cost model: then
    the difference is not of the code alone.
    """

    view: ClassVar[str] = "diff"
    json_paths: ClassVar[Mapping[str, str]] = paths(
        *(
            "change",
            "unlikeness",
            "is_paired",
            "is_comparable",
            "is_quiet",
            "settings",
            "layers",
            "verdict",
            "warnings",
        ),
        base="base.named_forecast",
        head="head.named_forecast",
        exceeded="checked_limits",
    )

    base: Side
    head: Side
    allowed: ChangeLimits = field(default_factory=ChangeLimits)
    notes: tuple[str, ...] = ()
    is_comparable: bool = True
    derived: Derived = field(init=False, compare=False, repr=False, default_factory=partial(Cache, 4))

    def __repr__(self) -> str:
        change = self.step_seconds
        around = f"{signed(change.low - 1)} … {signed(change.high - 1)}"
        return f"Diff({self.base.name} → {self.head.name}: step {signed(change.mid - 1)} ({around}))"

    @derived_property
    def step_seconds(self) -> Interval:
        """Of one step."""
        return step_change(self.base, self.head)

    @property
    def sample_seconds(self) -> Interval:
        """Of one sample: the step's, unless the global batch changes."""
        change, batches = self.step_seconds, (self.base.forecast.global_batch, self.head.forecast.global_batch)
        return change.scaled(batches[0] / batches[1])

    @property
    def total_seconds(self) -> Interval | None:
        """Of the job; None where the length of one of them is unknown."""
        return self._like_step(self.base.forecast.total_seconds, self.head.forecast.total_seconds)

    @property
    def dollars(self) -> Interval | None:
        """Of the job; None where a price or a length is unknown."""
        return self._like_step(self.base.forecast.dollars, self.head.forecast.dollars)

    def _like_step(self, base: Interval | None, head: Interval | None) -> Interval | None:
        return None if base is None or head is None or not base.mid else like(self.step_seconds, head.mid / base.mid)

    @property
    def peak_bytes(self) -> Interval | None:
        """Of the peak of memory. Errors of two different steps are taken as independent, which is on the wide side."""
        base, head = self.base.forecast.peak_bytes, self.head.forecast.peak_bytes
        if base is None or head is None:
            return None
        return Interval.exact(1.0) if base == head else independent_change(base, head)

    @property
    def parameters(self) -> float | None:
        """Of the number of parameters."""
        return _ratio(self.base.forecast.parameters, self.head.forecast.parameters)

    @property
    def flops_per_sample(self) -> float | None:
        """Of the work of one sample."""
        return _ratio(self.base.forecast.flops_per_sample, self.head.forecast.flops_per_sample)

    @derived_property
    def layers(self) -> tuple[LayerChange, ...]:
        """Every layer that changes the step, the largest change first."""
        return layer_changes(self.base, self.head)

    @property
    def settings(self) -> dict[str, tuple[Any, Any]]:
        """Options that differ, base and head."""
        pairs = {name: (getattr(self.base.forecast, name), getattr(self.head.forecast, name)) for name in _SETTINGS}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    @property
    def exceeded(self) -> tuple[Exceeded, ...]:
        """The limits that are not kept."""
        return exceeded(self, self.allowed)

    @property
    def is_paired(self) -> bool:
        """Whether errors of the two sides cancel."""
        return not differing(self.base.forecast, self.head.forecast)

    @property
    def verdict(self) -> str:
        """Whether the step gets slower or faster, and how sure that is, in one sentence."""
        change = self.step_seconds
        if change.low == change.high == 1:
            return "the step does not change"
        if change.low > 1:
            return "the step is slower, at both ends of the interval"
        if change.high < 1:
            return "the step is faster, at both ends of the interval"
        if change.mid > 1:
            return "the step is probably slower; the interval includes a faster one"
        if change.mid < 1:
            return "the step is probably faster; the interval includes a slower one"
        return "the step takes as long; the interval includes slower and faster ones"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know besides the numbers."""
        apart = differing(self.base.forecast, self.head.forecast)
        notes = list(self.notes)
        if apart:
            text = f"The sides differ in {', '.join(apart)}: their errors do not cancel, so the interval is wider."
            notes.append(Note(text, Importance.EVIDENCE))
        if self.base.forecast.global_batch != self.head.forecast.global_batch:
            change = signed(self.sample_seconds.mid - 1)
            notes.append(Note(f"The global batch differs: time per sample is {change}.", Importance.NOT_AS_ASKED))
        # The head first: a base that was read back from text has lost how important its notes are.
        for side in (self.head, self.base):
            side_notes = (*side.notes, *side.forecast.warnings)
            notes += [note if self._is_of_both(note) else as_note(note).of(side.name) for note in side_notes]
        return tuple(dict.fromkeys(notes))

    def _is_of_both(self, note: str) -> bool:
        return all(note in (*side.notes, *side.forecast.warnings) for side in (self.base, self.head))

    def within(self, allowed: ChangeLimits) -> "Diff":
        """The same comparison under other limits."""
        return replace(self, allowed=allowed)

    def records(self) -> tuple[dict[str, Any], ...]:
        """A row for each layer that changes."""
        return tuple(change.as_dict() for change in self.layers)

    @property
    def change(self) -> ChangeRatios:
        """Every ratio."""
        return ChangeRatios(**{item.name: getattr(self, item.name) for item in fields(ChangeRatios)})

    @property
    def checked_limits(self) -> tuple[Exceeded, ...]:
        """The limits that are not kept, where they can be checked."""
        return self.exceeded if self.is_comparable else ()

    @property
    def is_quiet(self) -> bool:
        """Whether the change is too small for a comment."""
        return is_quiet(self, self.allowed)

    @property
    def unlikeness(self) -> float:
        """The part of the step that the two sides do not share."""
        return unlikeness(self.base.kernels, self.head.kernels)


def _ratio(base: float | None, head: float | None) -> float | None:
    return None if not base or head is None else head / base
