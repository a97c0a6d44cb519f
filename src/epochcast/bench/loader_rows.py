"""A loader as a question of a campaign: {"loader": file.py:make_loader, or "" for generated JPEG files, "batch"}.

`seconds` of the row are those of one worker for a batch; `details` has all that was measured.
"""

from epochcast.bench.campaign import Outcome, Question, key_of, measurement_of
from epochcast.bench.fingerprint import machine
from epochcast.bench.loader import BATCH, find_loader, measure_loader
from epochcast.bench.measurements import Measurement
from epochcast.bench.timing import Timing

LIMIT_SECONDS = 20.0


def question_of(reference: str = "", batch: int = BATCH, limit_seconds: float = LIMIT_SECONDS) -> Question:
    """The question for one loader; `batch` is that of the generated files, a loader has its own."""
    ask = {"loader": reference, "batch": batch}
    words = ("loader", reference.rpartition(":")[2] or "jpeg", f"b{batch}")
    return Question("loader", key_of(words, ask), ask, limit_seconds)


def measure(question: Question) -> Measurement:
    """Time the loader."""
    reference = str(question.ask["loader"])

    def run() -> Outcome:
        loader = find_loader(reference) if reference else None
        measured = measure_loader(
            loader, batch=int(question.ask["batch"]), budget_seconds=question.limit_seconds, name=reference or None
        )
        repeats = max(1, measured.samples // max(1, measured.batch))
        timing = Timing(measured.worker_seconds, measured.worker_seconds, measured.variation, repeats)
        return Outcome(timing, details=measured.as_dict())

    return measurement_of(question, machine("cpu", 1), run)
