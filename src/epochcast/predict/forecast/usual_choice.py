"""What the usual choice would give where an assumed one matters: mixed precision for a network taken in float32.

Networks that are no language models are forecast as PyTorch trains them unless told otherwise, in float32. Most people
train them in mixed precision, so where that changes a step by more than `MATTERS`, the answer says by how much.
"""

from collections.abc import Iterator
from dataclasses import replace

from epochcast.base.notes import Note
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import PLAIN, Job
from epochcast.predict.forecast.job_defaults import usual_mixed_precision
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.session import Session
from epochcast.units import show_seconds

MATTERS = 1.3
_WORDS = {"amp_bf16": "bf16 mixed precision", "amp_fp16": "fp16 mixed precision"}


def with_usual_choice(answer: Forecast, job: Job, placement: Placement, session: Session) -> Forecast:
    """The answer, with a note where the usual precision would take another time."""
    notes = tuple(_notes(answer, job, placement, session))
    return replace(answer, warnings=(*answer.warnings, *notes)) if notes else answer


def _notes(answer: Forecast, job: Job, placement: Placement, session: Session) -> Iterator[Note]:
    usual = usual_mixed_precision(placement.device)
    is_plain = answer.assumed.get("precision") == PLAIN["precision"] and answer.mode == "training"
    if not is_plain or usual not in _WORDS or placement.measured_step is not None:
        return
    mixed = forecast_job(replace(job, precision=usual), placement, session, step_only=True).step_seconds.mid
    factor = answer.step_seconds.mid / mixed
    if factor > MATTERS:
        yield Note(
            f"fp32 is assumed: in {_WORDS[usual]} a step takes {show_seconds(mixed)}, {factor:.1f}× faster. Use "
            f"`precision` {usual} if you train so."
        )
