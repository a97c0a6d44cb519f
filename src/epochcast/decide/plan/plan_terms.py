"""What is asked of a plan beside job and offers: how the batch may change, what else is tried, what else is paid."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

from epochcast.decide.plan.billing import NO_EXTRAS, Extras
from epochcast.decide.plan.learning import CriticalBatch, Learning
from epochcast.decide.plan.spot import Spot
from epochcast.errors import BadInput, UnknownName
from epochcast.predict.forecast.job import Job

POLICIES = ("fixed", "scale", "auto")
# Options that change how a job runs and not what it learns from, or hardly.
AXES = ("precision", "optimizer", "checkpointing", "compile", "attention", "update_style", "channels_last")
_WORDS: Mapping[str, Mapping[str, object]] = {
    "checkpointing": {"full": True, "half": "half", "operators": "operators", "selective": "selective", "none": False},
    "channels_last": {"yes": True, "no": False, "true": True, "false": False},
}
MOST_VARIANTS = 64
_AUGMENT = "augment"

Variant = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """What happens to the batch where there are more GPUs.

    fixed   `batch` is of the job: every GPU takes its part
    scale   `batch` is of one GPU: the job's grows with their number, up to `most`
    auto    every GPU takes the largest power of two it holds, or that finishes first; the job's up to `most`;
            `batch` is the one that the job's epochs are meant for
    """

    name: str = "auto"
    batch: int | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        if self.name not in POLICIES:
            raise UnknownName("batch policy", self.name, POLICIES)
        if self.name != "auto" and self.batch is None:
            raise BadInput(f"batch policy {self.name!r} needs a batch")
        if self.most is not None and self.most < 1:
            raise BadInput(f"max_global_batch must be at least 1, got {self.most}")
        if self.name == "fixed" and self.most is not None and (self.batch or 0) > self.most:
            raise BadInput(f"a fixed batch of {self.batch} is above max_global_batch, {self.most}")

    def job(self, job: Job) -> Job:
        """The job with the batch that does not depend on the offer."""
        if self.name == "fixed":
            return replace(job, batch=None, global_batch=self.batch)
        return replace(job, batch=self.batch if self.name == "scale" else None, global_batch=None)

    def most_per_pass(self, passes: int) -> int | None:
        """The largest batch of a GPU's pass where a step has so many."""
        if self.most is None:
            return None
        if self.most < passes:
            raise BadInput(f"a batch of at most {self.most} does not divide over {passes} passes")
        return self.most // passes


def policy_of(name: str | None, batch: int | None, most: int | None) -> BatchPolicy | None:
    """The policy that is asked for; None where the job's own batch is. The largest alone keeps a given one fixed."""
    if name is None and most is None:
        return None
    return BatchPolicy(name or ("auto" if batch is None else "fixed"), batch, most)


@dataclass(frozen=True, slots=True)
class PlanTerms:
    """Everything beside job, offers and limits. A `policy` of None takes the job's own batch."""

    policy: BatchPolicy | None = None
    critical: CriticalBatch | None = None
    what_if: tuple[tuple[str, tuple[str, ...]], ...] = ()
    extras: Extras = NO_EXTRAS
    spot: Spot | None = None
    augment_epochs: tuple[tuple[int, int], ...] = ()
    """Copies of each sample (`augment`) to try, each with the epochs that reach the wanted accuracy with it."""
    assumed_startup: tuple[str, ...] = ()
    """The parts of start-up in `extras` that nobody said."""

    def __post_init__(self) -> None:
        if prod(1 + len(values) for _, values in self.what_if) * max(1, len(self.augment_epochs)) > MOST_VARIANTS:
            raise BadInput(f"at most {MOST_VARIANTS} combinations are tried: ask for fewer values at once")

    def learning(self, job: Job) -> Learning | None:
        """How epochs depend on the batch; None where nobody gave a critical batch, or the batch is always the same."""
        if self.critical is None:
            return None
        reference = job.global_batch or job.batch if self.policy is None else self.policy.batch
        if reference is None:
            raise BadInput("give `batch`: the batch that the number of epochs is meant for")
        return Learning(self.critical, reference)

    def variants(self, job: Job) -> tuple[tuple[Variant, Job], ...]:
        """The job as it is, and with every combination of what else is tried."""
        axes = [
            [(), *(((name, value),) for value in values if _value(name, value) != getattr(job, name))]
            for name, values in self.what_if
        ]
        axes += [[((_AUGMENT, f"{copies}:{epochs}"),) for copies, epochs in self.augment_epochs]] * bool(
            self.augment_epochs
        )
        variants: dict[Job, Variant] = {}
        for choice in product(*axes):
            variant: Variant = tuple(pair for part in choice for pair in part)
            changes: dict[str, Any] = {}
            for name, value in variant:
                changes |= _augmented(value) if name == _AUGMENT else {name: _value(name, value)}
            changed = replace(job, **changes)
            variants.setdefault(changed, variant)
        return tuple((variant, changed) for changed, variant in variants.items())


NO_TERMS = PlanTerms()


def what_if_in(texts: Iterable[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Axes as they are typed: precision=amp,bf16 compile=inductor."""
    axes: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip().replace("-", "_")
        names = tuple(value.strip() for value in values.split(",") if value.strip())
        if not equals or not names:
            raise BadInput(f"what to try is written precision=amp,bf16; got {text!r}")
        if name not in AXES:
            raise UnknownName("option to try", name, AXES)
        axes[name] = (*axes.get(name, ()), *names)
    return tuple(axes.items())


def _augmented(value: str) -> dict[str, int]:
    copies, _, epochs = value.partition(":")
    return {"augment": int(copies), "epochs": int(epochs)}


def _value(name: str, text: str) -> object:
    words = _WORDS.get(name)
    if words is None:
        return text
    if text.casefold() not in words:
        raise UnknownName(name, text, words)
    return words[text.casefold()]
