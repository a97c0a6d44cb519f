"""Cases that are written down: what users and logs say (`known_cases.toml`), and trainings with an injected fault."""

import json
import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import epochcast as ec
from epochcast.observe.check.observed_log import observed_text
from epochcast.observe.check.speed_check import SpeedCheck
from epochcast.observe.runs.speed_verdict import FASTER, NORMAL, SLOWER
from epochcast.predict.forecast.session import Session
from studies.check.fault_trainings import PASSES, TRAININGS, FaultTraining

KNOWN = Path(__file__).with_name("known_cases.toml")
USERS, LOGS, TRAINED = "users", "logs", "trainings"
NOTHING, PAUSES = "none", "pauses"
_VERDICTS = {NOTHING: NORMAL, PAUSES: NORMAL, "accumulation bar": FASTER}
_CAUSES = {"accumulation bar": "accumulation"}
_CHANGES = 1.1
"""Compiling makes steps faster or slower by more than this, or it changes nothing."""


@dataclass(frozen=True, slots=True)
class WrittenCase:
    """A job as somebody describes it, the speed that was seen, and what is right."""

    name: str
    kind: str
    cause: str
    verdict: str
    job: dict[str, Any]
    observed: Any

    def checked(self, session: Session) -> SpeedCheck:
        """The answer."""
        return ec.check(observed=self.observed, session=session, config=None, **self.job)


def written_cases() -> Iterator[WrittenCase]:
    """Users' and logs' first; logs where EPOCHCAST_LOGS names their folder, trainings where some were made."""
    folder = os.environ.get("EPOCHCAST_LOGS")
    for case in tomllib.loads(KNOWN.read_text(encoding="utf-8"))["case"]:
        job = {name: tuple(value) if isinstance(value, list) else value for name, value in case["job"].items()}
        verdict = case.get("verdict", NORMAL if case["cause"] == NOTHING else SLOWER)
        if "log" not in case:
            yield WrittenCase(case["name"], USERS, case["cause"], verdict, job, case["observed"])
        elif folder:
            yield WrittenCase(case["name"], LOGS, case["cause"], verdict, job, Path(folder) / case["log"])
    for line in TRAININGS.read_text(encoding="utf-8").splitlines() if TRAININGS.is_file() else ():
        yield _trained(FaultTraining(**json.loads(line)))


def _trained(row: FaultTraining) -> WrittenCase:
    """The reference is what a user measures where the job runs well; its step is of one pass on one process."""
    shape = {} if row.input_shape is None else {"input_shape": tuple(row.input_shape)}
    job = {"model": row.model, "device": "cpu", "batch": row.batch, "optimizer": "sgd", **shape, **row.options}
    passes = PASSES if row.fault == "accumulation bar" else 1
    job["step_seconds"] = f"{passes * row.reference_seconds * 1e3:.4f}ms@{passes * row.batch}"
    observation = observed_text(row.log, row.fault)
    ratio = observation.seconds.mid / row.reference_seconds
    compiled = NORMAL if 1 / _CHANGES < ratio < _CHANGES else SLOWER if ratio > 1 else FASTER
    verdict = compiled if row.fault == "compilation" else _VERDICTS.get(row.fault, SLOWER)
    name = f"{row.model}, {row.fault}"
    return WrittenCase(name, TRAINED, _CAUSES.get(row.fault, row.fault), verdict, job, observation)
