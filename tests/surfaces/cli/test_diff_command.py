import json
from pathlib import Path

import pytest
from tests.decide.diff.conftest import git, network, repository

from epochcast.decide.diff.forecast_provenance import Provenance

from .conftest import Command, Ran, answer

__all__ = ["repository"]

LINE = "diff resnet18 resnet34 --device V100 --batch 32 --dataset imagenet-1k"


def test_json_has_the_contract() -> None:
    body = answer(LINE)
    assert {"base", "head", "change", "layers", "exceeded"} <= body.keys()
    change = body["change"]
    for name in ("step_seconds", "total_seconds", "peak_bytes", "dollars"):
        assert change[name]["low"] <= change[name]["mid"] <= change[name]["high"]
        assert change[name]["mid"] == pytest.approx(body["head"][name]["mid"] / body["base"][name]["mid"])
    assert change["parameters"] == body["head"]["parameters"] / body["base"]["parameters"]
    assert sum(layer["share"] for layer in body["layers"]) == pytest.approx(1, abs=1e-3)
    assert body["exceeded"] == []


def test_a_limit_that_is_exceeded_is_exit_code_3(command: Command) -> None:
    ran = command(f"{LINE} --max-time-increase 5% --max-cost-increase 500% --max-memory 1GiB --json")
    assert ran.code == 3
    assert [one["what"] for one in ran.json["exceeded"]] == ["time_increase", "most_memory_bytes"]
    assert command(f"{LINE} --max-time-increase 500%").code == 0


def test_the_table_names_the_blocks_responsible(command: Command) -> None:
    ran = command(f"{LINE} --max-time-increase 5%")
    for words in ("resnet18 → resnet34, 1 × V100", "layer3.", "added (", "exceeded: time +", "at both ends"):
        assert words in ran.out


def test_a_small_change_is_one_line_and_a_quiet_comment(command: Command, tmp_path: Path) -> None:
    comment, badge = tmp_path / "comment.md", tmp_path / "badge.json"
    ran = command(f"{LINE} --quiet-below 900% --markdown {comment} --badge {badge}")
    assert ran.code == 0
    assert ran.out.splitlines()[0] == "resnet18 → resnet34: time, cost and memory change by less than 900 %"
    assert comment.read_text().splitlines()[:2] == ["<!-- epochcast -->", "<!-- quiet -->"]
    written = json.loads(badge.read_text())
    assert (written["schemaVersion"], written["label"], written["color"]) == (1, "training", "blue")
    assert "$" in written["message"]
    loud = command(f"{LINE} --quiet-below 1% --max-dollar-increase $0.01 --markdown {comment} --badge {badge} --json")
    assert (loud.code, loud.json["is_quiet"]) == (3, False)
    assert "<!-- quiet -->" not in comment.read_text() and json.loads(badge.read_text())["color"] == "red"


def test_init_writes_a_workflow_once(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("diff --init").code == 0 and command("diff --init --ci gitlab").code == 0
    assert (tmp_path / ".github/workflows/epochcast.yml").is_file() and (tmp_path / ".gitlab/epochcast.yml").is_file()
    again = command("diff --init")
    assert (again.code, "epochcast.yml exists: remove it, or edit it" in again.err) == (2, True)
    assert "no system of continuous integration called 'jenkins'" in command("diff --init --ci jenkins").err
    assert "--ci goes with --init" in command("diff --ci github").err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("diff resnet18 resnet34 --max-cost-increase $5", "dollars go with --max-dollar-increase"),
        ("diff resnet18 resnet34 --max-memory 40", "--max-memory 40: give a unit, for example 40GB"),
        ("diff resnet18 resnet34 --device V100 --batch 32 --max-time-increase lots", "--max-time-increase: 'lots'"),
        (
            "diff resnet18 resnet34 --device V100 --batch 32 --markdown /no/such/x.md",
            "no folder '/no/such' to write x.md to",
        ),
        ("diff resnet18 resnet34 --device V100 --batch 32 --max-time-increase 5", "'5' is 500 %; write 5% or 500%"),
        ("diff resnet18 resnet34 --device V100 --batch 32 --max-memory many", "--max-memory: 'many'"),
        ("diff resnet18 --device V100 --batch 32", "Missing argument 'BASE HEAD'"),
        ("diff resnet18 resnet34 --batch 32", "a comparison needs a device"),
        ("diff resnet18 resnet34 --base main", "one thing is compared"),
        ("diff resnet18 --head main", "--head goes with --base"),
        ("diff --accept", "--accept goes with --lock"),
        ("diff --lock --base main", "give one of them"),
        ("diff resnet18 --lock", "write job:NAME"),
        ("diff job:none job:small", "no job in epochcast.toml called 'none'"),
        ("diff job:small --base nowhere", "no git revision 'nowhere'"),
        ("diff --lock", "epochcast diff --lock --accept"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(command: Command, repository: Path, line: str, message: str) -> None:
    if line == "diff resnet18 --lock":
        assert command("diff --lock --accept").code == 0
    ran = command(line)
    assert ran.code == 2
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1


def test_outside_a_repository_a_revision_is_refused(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = command("diff resnet18 --base main --device V100 --batch 1")
    assert (ran.code, "is not in a git repository" in ran.err) == (2, True)


def test_a_job_is_compared_with_itself_at_a_revision(command: Command, repository: Path) -> None:
    (repository / "net.toml").write_text(network(32, 64))
    ran = command("diff job:small --base main --json")
    assert ran.code == 0, ran.err
    body = ran.json
    assert body["change"]["step_seconds"]["mid"] > 1
    assert body["base"]["name"].startswith("job:small at main (")
    assert body["warnings"][0] == "head is the working tree with 1 changed file"
    assert {layer["name"] for layer in body["layers"]} >= {"conv2", "fc"}
    git(repository, "commit", "-qam", "wider")
    again = command("diff job:small --base HEAD~1 --head HEAD --json").json
    assert again["change"] == body["change"]


def test_all_jobs_are_compared_where_none_is_named(command: Command, repository: Path) -> None:
    body = command("diff --base main --json").json
    assert list(body["jobs"]) == ["job:small", "job:large"]
    assert all(each["change"]["step_seconds"]["mid"] == 1 for each in body["jobs"].values())


def test_what_fails_at_one_revision_says_at_which(command: Command, repository: Path) -> None:
    (repository / "net.toml").write_text("name = 3")
    git(repository, "commit", "-qam", "broken")
    git(repository, "tag", "broken")
    (repository / "net.toml").write_text(network(32))
    ran = command("diff job:small --base broken")
    assert ran.code == 2
    assert ran.err.startswith("epochcast: at broken (")


def locked(command: Command, repository: Path) -> Ran:
    assert command("diff --lock --accept").code == 0
    (repository / "net.toml").write_text(network(32, 64))
    return command("diff --lock --max-time-increase 5% --json")


def test_a_lock_stands_in_for_the_base(command: Command, repository: Path) -> None:
    ran = locked(command, repository)
    assert ran.code == 3
    assert [(one["of"], one["what"]) for one in ran.json["exceeded"]] == [
        ("job:small", "time_increase"),
        ("job:large", "time_increase"),
    ]
    by_revision = command("diff job:small --base main --json").json
    by_lock = ran.json["jobs"]["job:small"]
    assert by_lock["change"]["step_seconds"] == pytest.approx(by_revision["change"]["step_seconds"], rel=1e-4)
    assert command("diff --lock --accept").code == 0
    assert command("diff --lock --max-time-increase 0%").code == 0


def test_a_lock_of_another_epochcast_is_told_and_no_limit_is_checked(
    command: Command, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked(command, repository)
    for module in ("forecast_lock", "diff_compare"):
        monkeypatch.setattr(f"epochcast.decide.diff.{module}.own_provenance", lambda: Provenance("99.0", "abc"))
    ran = command("diff job:small --lock --max-time-increase 5%")
    assert ran.code == 5
    assert "the difference may be of epochcast and not of the job" in " ".join(ran.out.split())
    body = command("diff job:small --lock --max-time-increase 5% --json").json
    assert (body["is_comparable"], body["exceeded"]) == (False, [])


def test_the_comment_for_a_pull_request_is_readable_markdown(
    command: Command, repository: Path, tmp_path: Path
) -> None:
    (repository / "net.toml").write_text(network(32, 64))
    path = tmp_path / "comment.md"
    assert command(f"diff job:small --base main --max-time-increase 5% --markdown {path}").code == 3
    lines = path.read_text().splitlines()
    assert lines[0] == "<!-- epochcast -->"
    assert any(line.startswith("❌ **time +") for line in lines)
    rows = [line for line in lines if line.startswith("| ") or line.startswith("|  |")]
    assert any(row.startswith("| step |") for row in rows)
    assert {row.count("|") for row in rows} == {6, 5}
    assert any("<summary>Layers responsible" in line for line in lines)


def test_nothing_is_half_written_where_a_job_fails(command: Command, repository: Path) -> None:
    assert command("diff --lock --accept").code == 0
    before = (repository / "epochcast.lock").read_bytes()
    (repository / "net.toml").write_text("name = 3")
    assert command("diff --lock --accept").code == 2
    assert (repository / "epochcast.lock").read_bytes() == before
    assert json.loads(before)["format"] == 1
