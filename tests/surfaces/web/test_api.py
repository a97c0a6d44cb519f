"""The API of a real server, called as scripts call it."""

import io
import json
import os
import time
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.surfaces.web.conftest import Served

import epochcast as ec
from epochcast.interval import Interval
from epochcast.observe.recording.recorded_rows import AttemptStart, RecordedRow
from epochcast.observe.recording.server_sink import ServerSink
from epochcast.observe.runs.standing import Standing
from epochcast.observe.store.run_labels import label_run
from epochcast.observe.store.store_opening import open_store
from epochcast.surfaces.web.log_tail import log_tail

JOB: dict[str, Any] = {"model": "resnet18", "device": "V100", "batch": 32, "samples": 10_000, "epochs": 2}
START: dict[str, Any] = {"job": "mine", "attempt": 1, "at": 1_763_370_000.0, "total_steps": 1000}


def train(step: int, at: float) -> dict[str, Any]:
    return {"ec": "train", "step": step, "at": START["at"] + at, "steps": 10, "step_seconds": 0.1, "loss": 2.3}


def ask(client: httpx.Client, verb: str, **options: Any) -> dict[str, Any]:
    answer = client.post(f"/api/v1/{verb}", json=options)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def refused(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    detail: str = answer.json()["detail"]
    return detail


def test_a_forecast_is_the_one_of_the_library(client: httpx.Client) -> None:
    assert ask(client, "forecast", **JOB) == json.loads(json.dumps(ec.forecast(**JOB, config=None).as_dict()))


def test_every_verb_answers(client: httpx.Client) -> None:
    assert ask(client, "advise", model="resnet18", device="V100")["max_batch"]["safe"] > 1
    assert ask(client, "inspect", model="resnet18")["parameters"] == 11_689_512
    scaled = ask(client, "scaling", model="resnet18", device="V100", batch=32, gpus=[1, 2], draw=True)
    assert [row["gpus"] for row in scaled["rows"]] == [1, 2] and "$schema" in scaled["chart"]
    planned = ask(client, "plan", model="resnet18", samples=10_000, batch=256, devices=["V100"], gpus=[1])
    assert planned["frontier"]
    changed = client.post("/api/v1/diff", json={"base": JOB, "head": {**JOB, "model": "resnet34"}}).json()
    assert changed["change"]["step_seconds"]["mid"] > 1


def test_text_is_read_as_the_command_line_reads_it(client: httpx.Client) -> None:
    assert ask(client, "forecast", **{**JOB, "samples": "10k"}) == ask(client, "forecast", **JOB)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"model": "resnet5"}, "near: resnet56"),
        ({"batch": -1}, "batch must be at least 1"),
        ({"batchs": 3}, "no option called 'batchs'"),
        ({"device": "Q100"}, "no device called"),
        ({"model": "evil.py:factory"}, "would run Python code"),
        ({"model": "os:system"}, "would run Python code"),
        ({"model": "/etc/passwd.json"}, "upload it first"),
        ({"model": "hf:/etc"}, "upload it first"),
        ({"model": "../secrets.toml"}, "upload it first"),
        ({"device": "/etc/own.toml"}, "device must be a name"),
        ({"lengths": "file=/etc/passwd"}, "lengths must be numbers"),
        ({"model": 7}, "model must be a name"),
    ],
)
def test_a_wrong_option_is_told_in_a_sentence(client: httpx.Client, changed: dict[str, Any], said: str) -> None:
    assert said in refused(client.post("/api/v1/forecast", json={**JOB, **changed}), 422)


def test_bodies_that_are_no_json_are_refused(client: httpx.Client) -> None:
    as_json = {"Content-Type": "application/json"}
    assert "not JSON" in refused(client.post("/api/v1/forecast", content=b"{", headers=as_json), 422)
    assert "object" in refused(client.post("/api/v1/forecast", json=[1]), 422)
    assert "application/json" in refused(client.post("/api/v1/forecast", content=b"{}"), 415)
    nested = b"[" * 100_000
    assert "nested" in refused(client.post("/api/v1/forecast", content=nested, headers=as_json), 422)
    large = b" " * (5 * 2**20)
    assert "at most" in refused(client.post("/api/v1/forecast", content=large, headers=as_json), 413)


def test_what_is_not_there_is_a_problem_too(client: httpx.Client) -> None:
    assert refused(client.get("/api/v1/nothing"), 404)
    assert "no run called" in refused(client.get("/api/v1/runs/nothing"), 404)
    assert refused(client.put("/api/v1/forecast"), 405)


# ---- uploads ------------------------------------------------------------------------------------


SPEC = b"""
name = "small"
input = [3, 32, 32]
loss = "none"
[[layers]]
type = "conv"
channels = 8
kernel = 3
"""


def upload(client: httpx.Client, name: str, content: bytes) -> httpx.Response:
    return client.post("/api/v1/uploads", params={"name": name}, content=content)


KERAS = {
    "class_name": "Sequential",
    "config": {
        "name": "m",
        "layers": [
            {"class_name": "InputLayer", "config": {"batch_shape": [None, 20], "name": "i"}},
            {"class_name": "Dense", "config": {"units": 10, "name": "d"}},
        ],
    },
}
BERT = {"model_type": "bert", "architectures": ["BertModel"], "num_hidden_layers": 1, "hidden_size": 64} | {
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
    "max_position_embeddings": 32,
}


def keras_archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("metadata.json", json.dumps({"keras_version": "3.5.0", "date_saved": "2025-01-01@00:00:00"}))
        archive.writestr("config.json", json.dumps(KERAS))
    return file.getvalue()


def onnx_file() -> bytes:
    from onnx import TensorProto, helper

    weight = helper.make_tensor("w", TensorProto.FLOAT, [20, 10], [0.0] * 200)
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name, size in (("x", 20), ("y", 10))
    ]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", ends[:1], ends[1:], [weight])
    return bytes(helper.make_model(graph).SerializeToString())


@pytest.mark.parametrize(
    ("name", "made", "parameters"),
    [
        ("model.json", lambda: json.dumps(KERAS).encode(), 210),
        ("model.keras", keras_archive, 210),
        ("model.onnx", onnx_file, 200),
        ("config.json", lambda: json.dumps(BERT).encode(), None),
        ("model.toml", lambda: SPEC, 224),
    ],
)
def test_a_file_is_forecast_by_what_its_upload_was_answered_with(
    client: httpx.Client, name: str, made: Any, parameters: int | None
) -> None:
    answer = upload(client, name, made())
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert told["parameters"] == parameters or (parameters is None and told["parameters"] > 10_000)
    again = ask(client, "forecast", model=told["model"], device="V100", batch=32)
    assert again["parameters"] == told["parameters"]


def test_a_damaged_file_is_the_caller_s_mistake(client: httpx.Client) -> None:
    from onnx import TensorProto, helper

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in ("x", "y")]
    nodes = [helper.make_node("Shape", ["x"], ["s"], start="a"), helper.make_node("Relu", ["x"], ["y"])]
    model = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]))
    answer = upload(client, "model.onnx", bytes(model.SerializeToString()))
    assert 400 <= answer.status_code < 500, answer.text
    assert "node 'Shape_0' (Shape): its attribute 'start' is of kind STRING, expected INT" in answer.text


@pytest.mark.parametrize("name", ["../../evil.json", "..", "a/b/c.onnx", "x.py", "x.pt", "", "\0.json"])
def test_names_of_uploads_lead_nowhere_else(client: httpx.Client, folder: Path, name: str) -> None:
    answer = upload(client, name, b"{}")
    assert answer.status_code == 422
    written = [path for path in folder.rglob("*") if path.is_file() and path.suffix in (".json", ".py", ".onnx")]
    assert all((folder / "uploads") in path.parents for path in written)


def test_a_file_that_is_no_model_leaves_nothing_behind(client: httpx.Client, folder: Path) -> None:
    before = sorted((folder / "uploads").rglob("*"))
    assert refused(upload(client, "model.onnx", b"no onnx at all"), 422)
    assert "empty" in refused(upload(client, "model.onnx", b""), 422)
    assert sorted((folder / "uploads").rglob("*")) == before


def test_a_bomb_is_refused(client: httpx.Client) -> None:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", b" " * 400_000_000)
        archive.writestr("metadata.json", b"{}")
    assert refused(upload(client, "model.keras", packed.getvalue()), 422)
    assert "at most" in refused(upload(client, "model.onnx", b"0" * (65 * 2**20)), 413)


# ---- runs ---------------------------------------------------------------------------------------


def test_reports_are_kept_once_however_often_they_are_sent(client: httpx.Client) -> None:
    body = {"start": START, "observations": [train(10, 1.0), train(20, 2.0)]}
    for _ in range(2):
        assert client.post("/api/v1/observations", json=body).status_code == 200
    told = client.get("/api/v1/runs/mine/observations").json()["observations"]
    assert [row["step"] for row in told] == [10.0, 20.0]
    run = client.get("/api/v1/runs/mine").json()
    assert (run["step"], run["total_steps"], run["state"]) == (20.0, 1000.0, "running")


def test_the_remaining_time_appears_beside_a_run(client: httpx.Client) -> None:
    start = {**START, "job": "followed"}
    rows = [train(10 * number, 1.0 * number) for number in range(1, 21)]
    assert client.post("/api/v1/observations", json={"start": start, "observations": rows}).status_code == 200
    end = time.monotonic() + 60
    while (told := client.get("/api/v1/runs/followed").json())["remaining_seconds"] is None:
        assert time.monotonic() < end, told
        time.sleep(0.5)
    assert told["remaining_seconds"]["mid"] == pytest.approx(80, rel=0.1)


def test_what_ec_track_sends_is_understood(server: Served) -> None:
    start = AttemptStart("tracked", 7, 1_763_370_000.0, total_steps=100)
    rows = [
        RecordedRow(0, "train", 10, 1.0, 10, 1.0, 0.1, loss=float("nan")),
        RecordedRow(1, "begin", 10, 1.0, what="validation"),
        RecordedRow(2, "done", 10, 3.0, seconds=2.0, what="validation"),
        RecordedRow(3, "end", 100, 12.0),
    ]
    assert ServerSink(server.url).send(start, rows) == 4
    told = server.client.get("/api/v1/runs/tracked").json()
    assert told["state"] == "ended"
    kept = server.client.get("/api/v1/runs/tracked/observations").json()["observations"]
    assert {row["phase"] for row in kept} == {"train", "validation", "end"} and kept[0]["loss"] == "nan"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "start"),
        ({"start": {"job": "x"}, "observations": []}, "attempt must be given, got None (in attempt start)"),
        ({"start": START, "observations": [{"ec": "nonsense"}]}, "`ec` must be one of"),
        ({"start": START, "observations": [{"ec": "train", "step": -4, "at": 0}]}, "step must be at least 0"),
        ({"start": START, "observations": [{"ec": "train", "step": "x", "at": 0}]}, "`step` must be a finite number"),
        ({"start": START, "observations": [train(1, 1.0)] * 10_001}, "at most 10,000"),
    ],
)
def test_reports_that_are_none_are_refused_whole(client: httpx.Client, body: Any, said: str) -> None:
    assert said in refused(client.post("/api/v1/observations", json=body), 422)


def test_runs_come_in_pages(client: httpx.Client) -> None:
    for number in range(5):
        start = {**START, "job": f"page-{number}"}
        client.post("/api/v1/observations", json={"start": start, "observations": [train(10, 1.0)]})
    names: list[str] = []
    before = None
    while True:
        page = client.get("/api/v1/runs", params={"most": 2, **({} if before is None else {"before": before})}).json()
        names += [run["run"] for run in page["runs"]]
        before = page["next"]
        if before is None:
            break
    assert len(names) == len(set(names)) and {f"page-{n}" for n in range(5)} <= set(names)


def test_a_run_can_be_told_what_it_trains(client: httpx.Client) -> None:
    told = client.put("/api/v1/runs/described", json={"job": JOB, "budget_dollars": 20.0}).json()
    assert told["device"] and told["state"] == "queued" and told["forecast_step_seconds"] > 0
    assert "budget_dollars must be above 0" in refused(
        client.put("/api/v1/runs/described", json={"budget_dollars": -1}), 422
    )


def test_points_of_a_long_run_reach_its_newest_step(client: httpx.Client) -> None:
    start = {**START, "job": "long", "total_steps": 100_000}
    rows = [train(10 * number, 1.0 * number) for number in range(1, 6001)]
    client.post("/api/v1/observations", json={"start": start, "observations": rows}).raise_for_status()
    told = client.get("/api/v1/runs/long/observations", params={"points": 500}).json()["observations"]
    assert 250 <= len(told) <= 500 and told[-1]["step"] == 60_000 and told[0]["step"] < 300
    assert refused(client.get("/api/v1/runs/long/observations", params={"points": 1}), 422)


def test_a_run_without_reports_for_several_intervals_is_silent(client: httpx.Client, folder: Path) -> None:
    with open_store(str(folder / "store.db")) as store:
        for name, interval, age in (
            ("often, just now", 1.0, 60.0),
            ("often, an hour ago", 1.0, 3_600.0),
            ("seldom, two hours ago", 3_600.0, 7_200.0),
            ("seldom, three days ago", 3_600.0, 3 * 86_400.0),
            ("unknown, ten minutes ago", None, 601.0),
            ("unknown, two hours ago", None, 7_200.0),
        ):
            run = store.open_run(name)
            standing = Standing(10.0, 100.0, "the log", 0.1, Interval.exact(9.0), 1.0, report_seconds=interval)
            progress = standing.as_dict() if interval else {}
            store.note(run.id, progress=progress, step=10.0, seen_at_seconds=time.time() - age)
        over = store.open_run("over")
        store.note(over.id, state="ended", seen_at_seconds=time.time() - 1e6)
    listed = client.get("/api/v1/runs", params={"most": 200}).json()["runs"]
    silent = {run["run"] for run in listed if run["is_silent"]}
    assert silent == {"often, an hour ago", "seldom, three days ago", "unknown, two hours ago"}
    one = client.get("/api/v1/runs/seldom, three days ago").json()
    assert one["is_silent"] and one["state"] == "running" and one["silent_after_seconds"] == 5 * 3600
    assert one["silent_seconds"] == pytest.approx(3 * 86_400, abs=600)


def test_what_a_run_will_cost_is_listed_and_told(client: httpx.Client) -> None:
    client.put("/api/v1/runs/paid", json={"job": {**JOB, "device": "A100"}}).raise_for_status()
    start, end = {**START, "job": "paid"}, time.monotonic() + 60
    with client.stream("GET", "/api/v1/events", params={"run": "paid"}) as stream:
        lines, told, step = stream.iter_lines(), None, 0
        while told is None:
            assert time.monotonic() < end
            rows = [train(step := step + 10, step / 10) for _ in range(5)]
            client.post("/api/v1/observations", json={"start": start, "observations": rows}).raise_for_status()
            told = json.loads(next(line for line in lines if line.startswith("data:"))[5:])["dollars"]
    assert 0 < told["low"] <= told["mid"] <= told["high"]
    listed = next(run for run in client.get("/api/v1/runs").json()["runs"] if run["run"] == "paid")
    assert listed["dollars"]["mid"] > listed["dollars_so_far"] > 0


def test_news_of_runs_come_as_events(client: httpx.Client) -> None:
    with client.stream("GET", "/api/v1/events", params={"run": "told"}) as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("retry:")
        start = {**START, "job": "told"}
        client.post("/api/v1/observations", json={"start": start, "observations": [train(10, 1.0)]})
        data = next(line for line in lines if line.startswith("data:"))
    assert json.loads(data.removeprefix("data:"))["run"] == "told"


def test_catalogues_and_counts(client: httpx.Client) -> None:
    assert any(one["name"] == "resnet50" for one in client.get("/api/v1/models").json()["models"])
    assert client.get("/api/v1/models", params={"search": "llama"}).json()["models"]
    assert client.get("/api/v1/devices").json()["devices"] and client.get("/api/v1/datasets").json()["datasets"]
    first = client.get("/api/v1/instances", params={"most": 3}).json()
    assert len(first["instances"]) == 3 and first["next"] == 3
    assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200
    assert "epochcast_requests_total" in client.get("/metrics").text
    evidence = client.get("/api/v1/evidence", params={"model": "resnet50", "device": "V100-SXM2-16GB"}).json()
    assert evidence["nearest"] and abs(evidence["nearest"][0]["error"]) < 2


def test_check_and_oom_answer_as_the_commands_do(client: httpx.Client) -> None:
    job = {"model": "resnet18", "device": "V100", "batch": 64}
    checked = client.post("/api/v1/check", json={**job, "observed": "2it/s", "neighbours": True}).json()
    alone = ec.check("resnet18", "2it/s", device="V100", batch=64)
    assert (checked["verdict"], checked["causes"][0]["name"]) == (alone.verdict, alone.causes[0].name)
    assert len(checked["neighbours"]) == 5 and all("github.com" in run["source"] for run in checked["neighbours"])
    message = (
        "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.78 GiB total capacity; 9.00 GiB already allocated; "
    )
    message += "1.00 GiB free; 14.00 GiB reserved in total by PyTorch)"
    assert client.post("/api/v1/oom", json={"message": message}).json()["culprit"] == "fragmentation"
    assert client.post("/api/v1/oom", json={"message": message, **job}).json()["model"] == "resnet18"


@pytest.mark.parametrize(
    ("verb", "question", "sentence"),
    [
        ("check", {"model": "resnet18", "device": "V100", "batch": 64}, "observed must be given, such as 1.2it/s"),
        ("check", {"model": "resnet18", "device": "V100", "batch": 64, "observed": "/etc/passwd"}, "has no number"),
        ("check", {"device": "V100", "batch": 64, "observed": "2it/s"}, "a check needs a model"),
        ("oom", {}, "message must be given"),
        ("oom", {"message": "it crashed"}, "no out-of-memory message"),
        ("oom", {"message": "CUDA out of memory. ", "batch": 64}, "options of a job need its model"),
    ],
)
def test_what_check_and_oom_refuse(client: httpx.Client, verb: str, question: dict[str, Any], sentence: str) -> None:
    answer = client.post(f"/api/v1/{verb}", json=question)
    assert answer.status_code == 422 and sentence in answer.json()["detail"]


def test_a_forecast_has_neighbours_where_they_are_asked_for(client: httpx.Client) -> None:
    job = {"model": "resnet50", "device": "V100", "batch": 64, "precision": "amp"}
    assert "neighbours" not in client.post("/api/v1/forecast", json=job).json()
    nearest = client.post("/api/v1/forecast", json={**job, "neighbours": True}).json()["neighbours"]
    assert nearest == sorted(nearest, key=lambda run: run["distance"])
    assert {"model", "device", "batch_per_gpu", "measured_seconds", "forecast_seconds", "source"} <= nearest[0].keys()


def test_jobs_of_runs_are_listed(client: httpx.Client, folder: Path) -> None:
    with open_store(str(folder / "store.db")) as store:
        store.open_run("with a job", job=ec.Job("resnet18", batch=8))
    listed = client.get("/api/v1/jobs").json()["jobs"]
    assert ("resnet18", ["with a job"]) in [(one["job"]["model"], one["runs"]) for one in listed]


def test_past_jobs_say_what_new_ones_take(client: httpx.Client) -> None:
    import polars as pl

    from epochcast.observe.history.history_verbs import fit, predict

    rows = [
        {"network": name, "gpus": gpus, "batch": batch, "epoch_seconds": size * (64 / gpus + 2)}
        for name, size in (("small", 1.0), ("large", 4.0))
        for gpus in (1, 2, 4, 8)
        for batch in (16, 32, 64)
    ]
    model = fit(pl.DataFrame(rows), "epoch_seconds", model="ridge")
    new = [{"network": "large", "gpus": 2, "batch": 32}]
    answer = client.post("/api/v1/history/predict", json={"model": model.as_dict(), "rows": new})
    assert answer.status_code == 200, answer.text
    assert answer.json() == json.loads(json.dumps(predict(model, pl.DataFrame(new)).as_dict()))
    for rows_sent, said in (
        ([], "list of objects"),
        ([{"model": "evil.py:f"}], "would run"),
        ([{"a": []}], "column 'a'"),
    ):
        refusal = client.post("/api/v1/history/predict", json={"model": model.as_dict(), "rows": rows_sent})
        assert said in refused(refusal, 422)
    assert "no model" in refused(client.post("/api/v1/history/predict", json={"model": {}, "rows": new}), 422)


def test_a_time_of_no_calendar_is_refused(client: httpx.Client) -> None:
    for at in (-1.0, 1e300):
        told = {"start": {"job": "odd", "attempt": 1, "at": at}, "observations": []}
        answer = client.post("/api/v1/observations", json=told)
        assert answer.status_code == 422 and "since 1970" in answer.json()["detail"]
    assert client.get("/api/v1/runs").status_code == 200


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([], "an object"),
        ({"name": "x"}, "no label of a run called 'name'"),
        ({"title": 3}, "a title is a text"),
        ({"title": "x" * 201}, "1 to 200 printable characters"),
        ({"tags": "nlp"}, "tags are a list of words"),
        ({"tags": ["a\nb"]}, "a tag has 1 to 60 printable characters"),
        ({"tags": [str(number) for number in range(16)]}, "at most 15 tags"),
        ({"is_archived": 1}, "is_archived is true or false"),
    ],
)
def test_labels_that_are_none_are_refused(client: httpx.Client, folder: Path, labels: Any, said: str) -> None:
    with open_store(str(folder / "store.db")) as store:
        store.open_run("to be labelled")
    assert said in refused(client.patch("/api/v1/runs/to be labelled", json=labels), 422)


def test_tags_are_found_whole_and_wildcards_are_letters(client: httpx.Client, folder: Path) -> None:
    with open_store(str(folder / "store.db")) as store:
        for name, tags in (("tag-a", ["50%"]), ("tag-b", ["50"]), ("tag-c", ["a_b"]), ("tag-d", ["axb"])):
            label_run(store, store.open_run(name), {"tags": tags})

    def tagged(tag: str) -> list[str]:
        return [run["run"] for run in client.get("/api/v1/runs", params={"tag": tag}).json()["runs"]]

    assert (tagged("50"), tagged("50%"), tagged("a_b"), tagged("%")) == (["tag-b"], ["tag-a"], ["tag-c"], [])
    assert [run["run"] for run in client.get("/api/v1/runs?search=A_B").json()["runs"]] == ["tag-c"]


def test_a_log_is_read_from_its_end_and_nothing_but_a_file(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("".join(f"line {number}\n" for number in range(100_000)))
    os.mkfifo(tmp_path / "pipe")

    def tail(source: str | None) -> list[str] | None:
        with open_store(str(tmp_path / "s.db")) as store:
            return log_tail(store.open_run(None, source=source), 3)

    assert tail(str(tmp_path / "log")) == ["line 99997", "line 99998", "line 99999"]
    assert tail(None) is tail("ec.track") is tail(str(tmp_path)) is tail(str(tmp_path / "none")) is None
    assert tail(str(tmp_path / "pipe")) is None
    (tmp_path / "open").write_text("whole\nnot ended")
    assert tail(str(tmp_path / "open")) == ["whole", "not ended"]
