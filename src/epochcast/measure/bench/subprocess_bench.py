"""The user's code is measured in a process of its own, as it is captured in one
(`describe.capture.subprocess_capture`).

Two factories with equally named neighbours do not mix, `sys.argv` is the file alone, a crash is one line or one row.
The process stays for the next question about the same code.
"""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from epochcast.describe.capture.model_reference import ModelReference
from epochcast.describe.capture.subprocess_capture import SubprocessModel
from epochcast.measure.bench.measurements import MeasuredMachine, Measurement

if TYPE_CHECKING:
    from epochcast.measure.bench.campaign import BenchQuestion
    from epochcast.measure.bench.loader_bench import LoaderMeasurement
    from epochcast.measure.bench.memory_probe import Probe

OURS = "epochcast"
# The keys of a question that may name code.
_REFERENCES = ("model", "data", "loader")
_HOST = "epochcast.measure.bench.subprocess_bench_host"


def is_user_code(reference: object) -> bool:
    """Whether a reference, like file.py:factory, names code of the user's."""
    if not isinstance(reference, str) or ":" not in reference:
        return False
    return ModelReference.of(reference).is_code and reference.partition(".")[0] != OURS


def user_code_of(question: "BenchQuestion") -> tuple[str, ...]:
    """References to the user's code that the answer to a question would run."""
    return tuple(str(question.ask[key]) for key in _REFERENCES if is_user_code(question.ask.get(key)))


class MeasuringProcess:
    """The last process that measured, for the next question about the same code."""

    def __init__(self) -> None:
        self._about: dict[str, Any] = {}
        self._process: SubprocessModel | None = None

    def ask(self, codes: tuple[str, ...], request: Mapping[str, Any]) -> Any:
        """The answer to one request about the user's code."""
        about = {"reference": codes[0], "codes": list(codes), "threads": _torch_threads()}
        if self._process is None or self._process.has_ended or about != self._about:
            self.end()
            self._about, self._process = about, SubprocessModel(about, _HOST)
        return self._process.ask(request)["value"]

    def end(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.end()
        self._process = None


def measured_apart(question: "BenchQuestion", process: MeasuringProcess) -> Measurement:
    """The row of a question that runs the user's code."""
    row = process.ask(user_code_of(question), {"question": asdict(question)})
    return Measurement(**{**row, "machine": MeasuredMachine(**row["machine"])})


def loader_measured_apart(reference: str) -> "LoaderMeasurement":
    """The loader that the user's code makes, timed."""
    from epochcast.measure.bench.loader_bench import LoaderMeasurement

    fields = _single_answer(reference, {"loader": {"reference": reference}})
    return LoaderMeasurement(**{**fields, "samples_seconds": tuple(fields["samples_seconds"])})


def probed_apart(
    reference: str, input_shape: tuple[int, ...] | None, optimizer: str, batches: tuple[int, int]
) -> "Probe":
    """The memory of two real steps of the user's model."""
    from epochcast.decide.advise.thesis_rule import Coefficients
    from epochcast.measure.bench.memory_probe import Probe

    ask = {"reference": reference, "input_shape": input_shape, "optimizer": optimizer, "batches": batches}
    fields = _single_answer(reference, {"probe": ask})
    coefficients = fields["coefficients"]
    for name in ("batches", "memory_bytes"):
        coefficients[name] = tuple(coefficients[name])
    return Probe(Coefficients(**coefficients), fields["counter"])


def _single_answer(reference: str, request: Mapping[str, Any]) -> Any:
    process = MeasuringProcess()
    try:
        return process.ask((reference,), request)
    finally:
        process.end()


def _torch_threads() -> int | None:
    """Threads that were chosen for torch here; None where it is not loaded, so that nothing was chosen."""
    torch = sys.modules.get("torch")
    return None if torch is None else int(torch.get_num_threads())
