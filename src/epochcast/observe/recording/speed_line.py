"""One line after the first steps of a training: whether its speed is normal for its job, and the likeliest cause."""

import sys
from collections.abc import Sequence
from typing import TextIO

from epochcast.errors import BadInput, EpochcastError
from epochcast.observe.check.observed_log import observed_reports
from epochcast.observe.check.speed_check import check_speed
from epochcast.observe.recording.recorded_rows import AttemptStart, RecordedRow
from epochcast.observe.runs.report import Report
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.session import Session

CHECKED_STEPS = 50
"""Start-up lies behind, and little time is lost."""


class SpeedLine:
    """A sink that writes once, after `steps` steps: `ec.track(loader, to=["run.jsonl", ec.SpeedLine(forecast)])`.

    `forecast` is that of the job, made by `ec.forecast`. The causes are worked out beside the training, which takes
    this process seconds of one processor.

    >>> import os, epochcast as ec
    >>> answer = ec.forecast("resnet18", device="V100", batch=32)
    >>> batches = range(10)
    >>> for batch in ec.track(batches, job="mine", to=[os.devnull, ec.SpeedLine(answer, steps=50)]):
    ...     pass  # your training step
    """

    name = "the speed check"

    def __init__(self, forecast: Forecast, steps: int = CHECKED_STEPS, stream: TextIO | None = None) -> None:
        if not forecast.has_details:
            raise BadInput("this forecast was read back; forecast the job again, with ec.forecast")
        if steps < 1:
            raise BadInput(f"steps must be at least 1, got {steps}")
        self._forecast, self._steps = forecast, steps
        self._stream = sys.stderr if stream is None else stream
        self._reports: list[Report] = []
        self._is_done = False

    def send(self, start: AttemptStart, rows: Sequence[RecordedRow]) -> int:
        """Take all in; write the line where there are steps enough."""
        if self._is_done:
            return len(rows)
        self._reports += [report for row in rows if (report := row.report(start)) is not None]
        if self._reports and self._reports[-1].step - start.start_step >= self._steps:
            self._is_done = True
            self._stream.write(f"{start.job}: {self._text()}\n")
            self._stream.flush()
        return len(rows)

    def _text(self) -> str:
        details = self._forecast.details
        try:
            answer = check_speed(
                details.job, details.placement, observed_reports(self._reports, "the first steps"), Session()
            )
        except EpochcastError as error:
            return f"the speed cannot be checked: {error}"
        said = f"{answer.factor.mid:.2f} times the forecast step, {answer.verdict}"
        if not answer.causes:
            return said
        cause = answer.causes[0]
        return f"{said}; likeliest cause: {cause.name} ({cause.evidence}). To test it: {cause.separate_by}"
