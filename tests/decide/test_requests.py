"""One declaration per verb: an option of a request is a flag, a keyword and an option of the web API."""

from importlib import import_module
from inspect import signature
from typing import Any, cast

import pytest
import typer

import epochcast as ec
from epochcast.base.options import options_of
from epochcast.decide.advise.advise_request import AdviseRequest
from epochcast.decide.diff.diff_request import DiffRequest, parse_increase
from epochcast.decide.handover.handover_request import HandoverRequest
from epochcast.decide.plan.plan_request import PlanRequest
from epochcast.decide.scaling_request import ScalingRequest
from epochcast.errors import BadInput
from epochcast.surfaces.cli.command_line import app

REQUESTS: dict[str, type] = {
    "plan": PlanRequest,
    "scaling": ScalingRequest,
    "advise": AdviseRequest,
    "diff": DiffRequest,
}


@pytest.mark.parametrize("verb", REQUESTS)
def test_every_option_is_a_keyword_and_a_flag(verb: str) -> None:
    import_module(f"epochcast.surfaces.cli.{verb}_command")
    group: Any = typer.main.get_command(app)
    flags = {flag for parameter in group.commands[verb].params for flag in parameter.opts}
    keywords = signature(getattr(ec, verb)).parameters
    for option in options_of(REQUESTS[verb]):
        assert option.help and option.help.endswith("."), option.name
        assert option.name in keywords
        assert option.command_flag in flags


@pytest.mark.parametrize("verb", ["forecast", "plan"])
def test_files_of_schedulers_are_flags(verb: str) -> None:
    import_module(f"epochcast.surfaces.cli.{verb}_command")
    group: Any = typer.main.get_command(app)
    helps = {flag: parameter.help for parameter in group.commands[verb].params for flag in parameter.opts}
    for option in options_of(HandoverRequest):
        assert helps[option.command_flag] == option.help


def test_every_option_is_in_the_web_api_but_revisions() -> None:
    pytest.importorskip("fastapi")
    from epochcast.surfaces.web.api_verbs import VERBS, diff_schema

    for verb in ("plan", "scaling", "advise"):
        properties = VERBS[verb].schema()["properties"]
        assert {option.name for option in options_of(REQUESTS[verb])} <= properties.keys()
    limits = {option.name for option in options_of(DiffRequest)} - {"base_revision", "head_revision"}
    assert diff_schema()["properties"].keys() == {"base", "head", *limits}


def test_a_request_is_given_once_and_of_its_own_kind() -> None:
    with pytest.raises(BadInput, match="objective is given twice: by its name and by the request"):
        ec.plan("mnist_cnn", PlanRequest(), samples=100, objective="knee")
    with pytest.raises(BadInput, match="the request must be a PlanRequest, got 5"):
        ec.plan("mnist_cnn", cast(Any, 5), samples=100)
    with pytest.raises(BadInput, match=r"gpus must be given, such as \[1, 2, 4, 8\]"):
        ec.scaling("mnist_cnn", device="T4", batch=8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"deadline_seconds": -1}, "deadline_seconds must be above 0, got -1"),
        ({"clouds": "aws"}, r"clouds must be a list of texts, such as \['aws'\]"),
        ({"restart_seconds": 60}, "`checkpoint_seconds` and `restart_seconds` are about interruptions"),
        ({"augment_epochs": {"one": 3}}, "augment_epochs must have numbers of copies and epochs"),
        ({"what_if": 3}, "what_if must be a list of texts"),
    ],
)
def test_a_wrong_value_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        PlanRequest(**options)


def test_values_are_as_python_json_and_the_command_line_write_them() -> None:
    of_json: dict[str, Any] = {"critical_batch": 15_000, "augment_epochs": {"4": 45}}
    assert PlanRequest(**of_json) == PlanRequest(critical_batch="15000", augment_epochs={4: 45})
    assert PlanRequest(spot=0.1).interruptions == PlanRequest(spot=0.1, restart_seconds=300).interruptions
    by_name = {option.name: option for option in options_of(PlanRequest)}
    assert by_name["boot_seconds"].read("4m") == 240
    assert by_name["gpus"].read("1-8") == (1, 2, 4, 8)
    assert by_name["augment_epochs"].read("1:100,4:45") == {1: 100, 4: 45}


def test_an_increase_needs_its_percent_sign() -> None:
    assert parse_increase("5%") == parse_increase("0.05") == 0.05
    with pytest.raises(BadInput, match="'5' is 500 %; write 5% or 500%"):
        parse_increase("5")
