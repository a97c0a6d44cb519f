"""A loader as a question of a campaign: {"loader": file.py:make_loader, or "" for generated JPEG files, "batch"}.

`seconds` of the row are those of one worker for a batch; `details` has all that was measured.
"""

from pathlib import Path

from epochcast.describe.capture.model_reference import ModelReference
from epochcast.describe.capture.script import name_not_in_script
from epochcast.errors import BadInput
from epochcast.measure.bench.campaign import BenchQuestion, CampaignOutcome, key_of, measurement_of
from epochcast.measure.bench.loader_bench import BATCH, find_loader, measure_loader
from epochcast.measure.bench.machine_fingerprint import machine
from epochcast.measure.bench.measurements import Measurement
from epochcast.measure.bench.timing import Timing

LIMIT_SECONDS = 20.0


def check_reference(reference: str) -> None:
    """Raise where a reference names no file, or no function of it, before anything is measured."""
    parts = ModelReference.of(reference)
    if not parts.module:
        raise BadInput(f"{reference!r} is no loader; write it like file.py:make_loader or package.module:make_loader")
    if parts.script:
        if not Path(parts.script).is_file():
            raise BadInput(f"there is no file {parts.script!r}")
        error = name_not_in_script(reference)
        if error is not None:
            raise BadInput(str(error))  # without what it says of models


def question_of(reference: str = "", batch: int = BATCH, limit_seconds: float = LIMIT_SECONDS) -> BenchQuestion:
    """The question for one loader; `batch` is that of the generated files, a loader has its own."""
    ask = {"loader": reference, "batch": batch}
    words = ("loader", ModelReference.of(reference).factory or "jpeg", f"b{batch}")
    return BenchQuestion("loader", key_of(words, ask), ask, limit_seconds)


def measure(question: BenchQuestion) -> Measurement:
    """Time the loader."""
    reference = str(question.ask["loader"])

    def run() -> CampaignOutcome:
        loader = find_loader(reference) if reference else None
        measured = measure_loader(
            loader, batch=int(question.ask["batch"]), budget_seconds=question.limit_seconds, name=reference or None
        )
        repeats = max(1, measured.samples // max(1, measured.batch))
        timing = Timing(measured.worker_seconds, measured.worker_seconds, measured.variation, repeats)
        return CampaignOutcome(timing, details=measured.as_dict())

    return measurement_of(question, machine("cpu", 1), run)
