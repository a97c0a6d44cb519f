"""A measured run as the command that its author would type: `epochcast forecast MODEL --device … --batch …`.

Every option of the run's job that is not the default is a flag, so the command asks exactly what the study asks.
"""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from epochcast.base.options import Option, options_of
from epochcast.measure.tables.run_placement import strategy_of
from epochcast.measure.tables.run_table import MeasuredRun
from epochcast.predict.forecast.job import Job

OPTIONS: Mapping[str, Option] = {option.name: option for option in options_of(Job)}
_ELSEWHERE = ("model", "batch", "reference", "fingerprint")
"""Options that the command begins with, and those that only files have."""
_SHAPES = ("input_shape", "images")
# Where a job is written as a flag of the command line, in this order, before the options of the training.
_SECONDS = ("hook_seconds", "loader_seconds", "audio_seconds")


def command_of(run: MeasuredRun) -> str:
    """The command that asks for this run."""
    words = ["epochcast", "forecast", str(run.job.model), "--device", run.device.name, "--batch", str(run.job.batch)]
    if run.gpus > 1:
        words += ["--gpus", str(run.gpus)]
        if run.nodes > 1:
            words += ["--nodes", str(run.nodes)]
        words += ["--strategy", strategy_of(run)]
    return shlex.join([*words, *_flags(run.job)])


def _flags(job: Job) -> Iterator[str]:
    for name, option in OPTIONS.items():
        value = getattr(job, name)
        if name not in _ELSEWHERE and value != option.default:
            yield from _flag(option, value)


def _flag(option: Option, value: Any) -> list[str]:
    """The words of one option."""
    flag = option.command_flag
    if isinstance(value, bool) and not option.words:
        return [flag if value else f"--no-{flag.removeprefix('--')}"]
    if isinstance(value, tuple) and option.name not in _SHAPES:
        return [word for item in value for word in (flag, str(item))]
    return [flag, _spelt(option, value)]


def _spelt(option: Option, value: Any) -> str:
    """The value as the command line reads it."""
    word = next((word for word, meant in option.words.items() if meant is value), None)
    if word is not None:
        return word
    if option.name in _SHAPES:
        return "x".join(map(str, value))
    return f"{value!r}s" if option.name in _SECONDS else str(value)
