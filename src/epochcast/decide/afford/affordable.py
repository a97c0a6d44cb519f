"""What a budget and a deadline pay for: for each model and method the most epochs or tokens, and where.

Every row is the answer of a plan that counts epochs (`decide.plan`): the machine on which most of the data can be
trained on within the limits with the asked probability. A language model without data counts in blocks of
`BLOCK_SEQUENCES` sequences, which give tokens.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import ClassVar

from epochcast.base.display import Displayed
from epochcast.base.frames import Framed
from epochcast.base.record import Record, paths
from epochcast.decide.afford.afford_request import AffordRequest
from epochcast.decide.plan.candidate import Candidate
from epochcast.decide.plan.choice import PlanLimits
from epochcast.decide.plan.plan_answer import Plan, planned
from epochcast.errors import BadInput, UnknownName
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.job_data import TEXT, fed_by
from epochcast.predict.forecast.job_defaults import settled
from epochcast.predict.forecast.session import Session
from epochcast.units import show_dollars, show_seconds, show_tokens

FULL, LORA = "full", "lora"
METHODS = (FULL, LORA)
DEFAULT_RANK = 16
BLOCK_SEQUENCES = 1024


@dataclass(frozen=True, slots=True)
class AffordableRow(Record):
    """A model by one method. `candidate` is where most of it fits; None where not even the first epoch (or the first
    block of sequences) does, with the reason, and with the machine that comes nearest.
    """

    json_paths: ClassVar[Mapping[str, str]] = paths(
        *("model", "method", "epochs", "samples", "tokens", "reason", "deadline_probability", "budget_probability"),
        *("days_since_priced",),
        parameters="shown.forecast.parameters",
        offer="shown.offer.instance.name",
        cloud="shown.offer.instance.cloud",
        device="shown.offer.instance.device",
        gpus="shown.offer.gpus",
        nodes="shown.offer.nodes",
        precision="shown.forecast.precision",
        strategy="shown.strategy",
        what_if="shown.what_if",
        batch_per_gpu="shown.forecast.batch_per_gpu",
        total_seconds="shown.total_seconds",
        dollars="shown.dollars",
        priced_on="shown.offer.instance.priced_on",
    )

    model: str
    method: str
    candidate: Candidate | None
    nearest: Candidate | None
    limits: PlanLimits
    samples_per_epoch: int
    tokens_per_sample: float | None
    counts_epochs: bool
    reason: str | None = None
    today: date | None = None

    @property
    def shown(self) -> Candidate | None:
        """The machine of the row: the one that affords most, or the nearest miss."""
        return self.candidate or self.nearest

    @property
    def epochs(self) -> float | None:
        """Whole epochs; None where the data has no epochs."""
        if not self.counts_epochs:
            return None
        return 0.0 if self.candidate is None else self.candidate.epochs

    @property
    def samples(self) -> int:
        """Samples that are trained on in all."""
        return 0 if self.candidate is None else round(self.candidate.epochs * self.samples_per_epoch)

    @property
    def tokens(self) -> float | None:
        """Tokens that are trained on in all, of a language model."""
        return None if self.tokens_per_sample is None else self.samples * self.tokens_per_sample

    @property
    def deadline_probability(self) -> float | None:
        """That it is done in time."""
        return None if self.shown is None else self.limits.deadline_probability(self.shown)

    @property
    def budget_probability(self) -> float | None:
        """That it costs no more than the budget."""
        return None if self.shown is None else self.limits.budget_probability(self.shown)

    @property
    def days_since_priced(self) -> int | None:
        """Age of the price in days."""
        if self.today is None or self.shown is None:
            return None
        return self.shown.offer.instance.age(self.today).days


@dataclass(frozen=True, repr=False)
class Affordable(Displayed, Framed, Record):
    """The rows of all models and methods, as they were asked."""

    view: ClassVar[str] = "afford"
    json_paths: ClassVar[Mapping[str, str]] = paths(
        *("sentence", "rows", "warnings"),
        budget_dollars="limits.budget_dollars",
        deadline_seconds="limits.deadline_seconds",
        sure="limits.sure",
    )

    limits: PlanLimits
    rows: tuple[AffordableRow, ...]
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Affordable({len(self.rows)} rows: {self.sentence})"

    @property
    def is_any(self) -> bool:
        """Whether anything can be trained within the limits."""
        return any(row.candidate is not None for row in self.rows)

    @property
    def sentence(self) -> str:
        """The largest model that fits, in one sentence; else the nearest misses."""
        afforded = [row for row in self.rows if row.candidate is not None]
        if not afforded:
            return f"Nothing fits within {self._limits}. {self._nearest}"
        best = max(afforded, key=lambda row: (row.candidate.forecast.parameters or 0) if row.candidate else 0)
        assert best.candidate is not None
        method = "" if best.method == FULL else " by LoRA"
        return f"{self._limits} trains {best.model}{method} for {amount(best)} on {best.candidate.offer.title}."

    @property
    def _limits(self) -> str:
        limits = self.limits
        money = None if limits.budget_dollars is None else show_dollars(limits.budget_dollars)
        time = None if limits.deadline_seconds is None else show_seconds(limits.deadline_seconds)
        return " in ".join(part for part in (money, time) if part)

    @property
    def _nearest(self) -> str:
        misses = [row.nearest for row in self.rows if row.nearest is not None]
        if not misses:
            return f"{self.rows[0].model}: {self.rows[0].reason}."
        fast = min(misses, key=lambda each: each.total_seconds.mid)
        cheap = min(misses, key=lambda each: each.dollars.mid)
        return (
            f"The first epoch takes at least {show_seconds(fast.total_seconds.mid)} ({fast.offer.title}) and "
            f"{show_dollars(cheap.dollars.mid)} ({cheap.offer.title})."
        )

    def records(self) -> tuple[dict[str, object], ...]:
        """A row for each model and method."""
        return tuple(row.as_dict() for row in self.rows)


def amount(row: AffordableRow) -> str:
    """12 epochs, or 1.3B tokens"""
    if row.counts_epochs:
        return f"{row.epochs:,.0f} epoch{'s' * (row.epochs != 1)}"
    return f"{show_tokens(row.tokens or 0)} tokens"


def affordable(
    jobs: Sequence[Job],
    request: AffordRequest,
    session: Session | None = None,
    progress: Callable[[int, int], None] | None = None,
    today: date | None = None,
) -> Affordable:
    """A row for every job by every method."""
    if not jobs:
        raise BadInput("what is to be trained? Give one or more models")
    session = session or Session()
    limits = request.plan_request().limits
    cases = [(job, method) for job in jobs for method in _methods(job, request.methods, session)]
    rows: list[AffordableRow] = []
    notes: dict[str, None] = {}
    for place, (job, method) in enumerate(cases):
        row, answer = _row(job, method, request, session, today)
        rows.append(row)
        notes.update(dict.fromkeys(() if answer is None else answer.warnings))
        if progress is not None:
            progress(place + 1, len(cases))
    return Affordable(limits, tuple(rows), tuple(notes))


def _row(
    job: Job, method: str, request: AffordRequest, session: Session, today: date | None
) -> tuple[AffordableRow, Plan | None]:
    name, counts_epochs, is_language = session.model(job).name, job.has_data, _is_language(job, session)
    if not counts_epochs and not is_language:
        raise BadInput(f"{name}: how much data is an epoch? Give a dataset or samples")
    job = replace(job, epochs=1, samples=job.samples if counts_epochs else BLOCK_SEQUENCES)
    if method == LORA and not job.lora:
        job = replace(job, lora=DEFAULT_RANK)
    elif method == FULL and job.lora:
        job = replace(job, lora=0)
    asked = request.plan_request(is_language=is_language)
    limits = asked.limits
    try:
        answer = planned(job, asked, session, None, today)
    except BadInput as error:
        if "no offer can run this job" not in str(error):
            raise
        return AffordableRow(name, method, None, None, limits, 0, None, counts_epochs, str(error), today), None
    reason = None if answer.chosen else next(iter(answer.reasons), None)
    return (
        AffordableRow(
            *(name, method, answer.chosen, answer.missed, limits, answer.data.samples or 0),
            *(answer.data.tokens_per_sample, counts_epochs, reason, today),
        ),
        answer,
    )


def _methods(job: Job, asked: Sequence[str], session: Session) -> Iterator[str]:
    for name in asked:
        if name not in METHODS:
            raise UnknownName("method", name, METHODS)
    if asked:
        yield from dict.fromkeys(asked)
    elif job.lora:
        yield LORA
    else:
        yield from METHODS if _is_language(job, session) else (FULL,)


def _is_language(job: Job, session: Session) -> bool:
    plain = settled(job, None, session).job
    return fed_by(session.trace(session.model(plain), plain.recipe(1))) == TEXT
