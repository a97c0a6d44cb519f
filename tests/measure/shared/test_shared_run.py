"""Files of shared runs: what they hold, what they refuse, and that those of the project are right."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epochcast.base.record_schema import json_schema
from epochcast.errors import BadInput, EpochcastError
from epochcast.interval import Interval
from epochcast.measure.shared.shared_run import SharedMachine, SharedRun, read_shared, shared_in

COMMUNITY = Path(__file__).parents[3] / "community"
RUN = SharedRun(
    origin="check",
    seen="typed",
    job={"model": "resnet50", "batch": 64, "precision": "amp_fp16"},
    device="A100-SXM4-40GB",
    step_seconds=Interval(0.09, 0.1, 0.11),
    measured_in="2026-11",
    epochcast="0.1.0",
)


def test_a_file_holds_what_was_written_and_is_small(tmp_path: Path) -> None:
    path = tmp_path / RUN.file_name
    path.write_text(RUN.text(), encoding="utf-8")
    assert path.name.startswith("a100-sxm4-40gb-resnet50-") and path.stat().st_size < 2000
    assert read_shared(path) == RUN
    measured = RUN.measured()
    assert (measured.step_seconds, measured.device.name, measured.job.batch) == (0.1, "A100-SXM4-40GB", 64)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"job": {"model": "net.py:make"}}, "a file or code of yours"),
        ({"job": {"model": "/home/anna/net.onnx"}}, "a file or code of yours"),
        ({"job": {"model": "hf:config.json"}}, "a file or code of yours"),
        ({"job": {"model": "resnet50", "lengths": "file=/home/anna/texts"}}, "may name a file, a host or a person"),
        ({"job": {"model": "resnet50", "dataset": "/data/anna"}}, "may name a file, a host or a person"),
        ({"job": {"model": "resnet50", "password": "x"}}, "password"),
        ({"contributor": "anna@example.com"}, "may name a file, a host or a person"),
        ({"software": {"torch": "2.13.0 /home/anna"}}, "may name a file, a host or a person"),
        ({"measured_in": "2026-11-19"}, "must be a month like 2026-11"),
        ({"device": "cpu"}, "machine.cpu is missing"),
        ({"device": "mine.toml"}, "is a data sheet of yours"),
        ({"gpus": 2, "nodes": 4}, "at least one GPU on each node"),
        ({"origin": "dreamt"}, "origin must be one of track, check, bench"),
        ({"step_seconds": Interval(0.0, 0.1, 0.2)}, "step_seconds must be above 0"),
        ({"data_fraction": 1.5}, "data_fraction must be between 0 and 1"),
    ],
)
def test_what_may_name_somebody_or_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(EpochcastError, match=message):
        replace(RUN, **changes)


def test_a_run_on_a_processor_says_which_and_is_used_there_alone() -> None:
    run = replace(RUN, device="cpu", machine=SharedMachine("Some CPU", 2, 1))
    assert run.file_name.startswith("some-cpu-resnet50-")
    with pytest.raises(BadInput, match="it ran on Some CPU, this is"):
        run.known_device()


def test_a_file_that_is_wrong_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({**RUN.as_dict(), "device": "A1000000"}), encoding="utf-8")
    with pytest.raises(BadInput, match=r"a\.json: no device called 'A1000000'"):
        shared_in(tmp_path)
    with pytest.raises(BadInput, match="no folder"):
        shared_in(tmp_path / "none")
    (tmp_path / "a.json").unlink()
    with pytest.raises(BadInput, match="has no shared run"):
        shared_in(tmp_path)


def test_every_file_of_the_community_is_valid_and_named_after_its_content() -> None:
    runs = shared_in(COMMUNITY)
    assert [name for name, run in runs.items() if name != run.file_name] == []
    assert [name for name in runs if (COMMUNITY / name).read_text(encoding="utf-8") != runs[name].text()] == []
    files = {path.name for path in COMMUNITY.iterdir()}
    assert files == {"README.md", "schema.json", *runs}


def test_the_schema_of_the_community_follows_from_the_record(request: pytest.FixtureRequest) -> None:
    path = COMMUNITY / "schema.json"
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A measured run, as `epochcast share` writes it",
        **json_schema(SharedRun),
        "additionalProperties": False,
    }
    text = f"{json.dumps(schema, indent=2)}\n"
    if request.config.getoption("--renew"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    for run in (RUN, *shared_in(COMMUNITY).values()):
        validator.validate(run.as_dict())
