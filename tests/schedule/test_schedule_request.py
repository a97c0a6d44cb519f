"""Requests about a queue: keywords of Python and flags of the command line follow from their fields."""

from inspect import signature
from typing import Any

import pytest
import typer

from epochcast.base.options import options_of
from epochcast.errors import BadInput, UnknownOption
from epochcast.queues import schedule_plan
from epochcast.schedule.schedule_request import RunQueueRequest, ScheduleRequest, SimulationRequest
from epochcast.surfaces.cli.schedule_command import schedule_app
from epochcast.surfaces.cli.schedule_plan_command import plan
from epochcast.surfaces.cli.schedule_run_command import run

from .test_workload_file import JOB, TYPE, document


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("plan", ScheduleRequest),
        ("queue", ScheduleRequest),
        ("simulate", SimulationRequest),
        ("run", RunQueueRequest),
    ],
)
def test_every_option_is_a_flag_with_its_help(command: str, kind: type) -> None:
    assert None not in (plan, run)  # their modules add commands
    group = typer.main.get_command(schedule_app)
    flags = {flag: item for item in group.commands[command].params for flag in item.opts}  # type: ignore[attr-defined]
    for option in options_of(kind):
        assert flags[option.command_flag].help.startswith(option.help.rstrip("."))


def test_every_option_is_a_keyword_of_python() -> None:
    keywords = signature(schedule_plan).parameters
    assert {option.name: option.default for option in options_of(ScheduleRequest)} == {
        option.name: keywords[option.name].default for option in options_of(ScheduleRequest)
    }
    queue = document(node_types=[TYPE], jobs=[JOB])
    plan = schedule_plan(queue, policy="edf", draws=3)
    assert (plan.policy, plan.draws) == ("edf", 3)
    with pytest.raises(UnknownOption, match="no option called 'polcy'"):
        schedule_plan(queue, polcy="edf")


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (ScheduleRequest, {"draws": 0}, "draws must be at least 1, got 0"),
        (ScheduleRequest, {"error": 9}, "error must be at most 3, got 9"),
        (ScheduleRequest, {"every_seconds": 0.0}, "every_seconds must be above 0, got 0"),
        (ScheduleRequest, {"at": "noon"}, "at must be an datetime, got 'noon'"),
        (SimulationRequest, {"preemption": "maybe"}, "preemption must be with, without or both, got 'maybe'"),
        (RunQueueRequest, {"look_seconds": 0.0}, "look_seconds must be above 0, got 0"),
        (RunQueueRequest, {"engine": "kubernetes"}, "engine must be local, ray or slurm, got 'kubernetes'"),
        (SimulationRequest, {"policies": ()}, "policies must name a policy"),
        (SimulationRequest, {"policies": 7}, "policies must be a list of texts, got 7"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(kind: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        kind(**options)


def test_policies_may_be_separated_by_commas_and_count_once() -> None:
    assert SimulationRequest(policies=("fifo, edf", "fifo")).policies == ("fifo", "edf")
