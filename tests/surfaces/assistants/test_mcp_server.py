"""`epochcast mcp`, asked by the SDK's own client over standard input and output."""

import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import epochcast as ec
from epochcast.surfaces.answer_schemas import answer_schema
from epochcast.surfaces.assistants.assistant_tools import TOOLS

pytest.importorskip("mcp")
anyio = pytest.importorskip("anyio")

JOB = {"model": "resnet18", "device": "V100", "batch": 64}
MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.53 GiB. GPU 0 has a total capacity of 23.65 GiB "
    "of which 1.10 GiB is free. Process 7 has 6.00 GiB memory in use. Including non-PyTorch memory, this process has "
    "16.55 GiB memory in use. Of the allocated memory 15.70 GiB is allocated by PyTorch, and 300.00 MiB is reserved by "
    "PyTorch but unallocated."
)
# The server, which stops where anything connects or looks up a name.
WATCHED = """
import sys
def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.bind"):
        sys.stderr.write(f"refused: {event} {arguments}\\n")
        raise RuntimeError(event)
from epochcast.surfaces.assistants.mcp_server import serve_assistants
sys.addaudithook(refuse)
serve_assistants()
"""


def with_client(ask: Callable[[Any], Awaitable[None]], tmp_path: Path, *arguments: str) -> str:
    """Ask a server in a process of its own, and give what it wrote to standard error."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    folder = tmp_path / "folder"
    folder.mkdir()
    environment = {**os.environ, "EPOCHCAST_CACHE": str(tmp_path / "cache")}
    server = StdioServerParameters(
        command=sys.executable, args=list(arguments or ("-m", "epochcast", "mcp")), env=environment, cwd=folder
    )
    errors = tmp_path / "errors"

    async def run() -> None:
        with errors.open("w") as stream:
            async with Client(stdio_client(server, errlog=stream)) as client:
                await ask(client)

    anyio.run(run)
    assert not list(folder.iterdir())
    return errors.read_text(encoding="utf-8")


def test_tools_have_the_schemas_of_the_commands_and_only_read(tmp_path: Path) -> None:
    async def ask(client: Any) -> None:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(listed) == ["forecast", "advise", "plan", "diff", "check", "oom"]
        for name, tool in listed.items():
            assert tool.output_schema == answer_schema(name)
            assert tool.annotations.read_only_hint and tool.annotations.open_world_hint is False
            assert tool.description
        assert {"model", "device", "batch", "observed"} <= listed["check"].input_schema["properties"].keys()
        assert listed["oom"].input_schema["required"] == ["message"]
        assert "draw" not in listed["forecast"].input_schema["properties"]

    assert with_client(ask, tmp_path) == ""


def test_answers_are_those_of_the_library_and_nothing_connects(tmp_path: Path) -> None:
    answers: dict[str, dict[str, Any]] = {}
    questions: Mapping[str, Mapping[str, Any]] = {
        "forecast": {**JOB, "neighbours": True},
        "advise": {"model": "resnet18", "device": "V100", "cpus": 8, "loader_seconds": "8ms"},
        "plan": {
            "model": "resnet18",
            "samples": 1_000_000,
            "epochs": 2,
            "batch": 256,
            "deadline_seconds": "6h",
            "clouds": ["aws"],
        },
        "diff": {"base": JOB, "head": {**JOB, "model": "resnet34"}},
        "check": {**JOB, "observed": "Iteration:  84%|####  | 160/190 [00:32<00:06,  5.00it/s]"},
        "oom": {"message": MESSAGE},
    }

    async def ask(client: Any) -> None:
        for name, question in questions.items():
            result = await client.call_tool(name, dict(question))
            assert not result.is_error, result.content
            answers[name] = result.structured_content

    assert with_client(ask, tmp_path, "-c", WATCHED) == ""
    forecast = ec.forecast("resnet18", device="V100", batch=64)
    assert answers["forecast"]["step_seconds"]["mid"] == pytest.approx(forecast.step_seconds.mid)
    assert all(row["source"] for row in answers["forecast"]["neighbours"])
    assert answers["advise"]["workers"] > 0
    assert answers["plan"]["chosen"]["dollars"]["mid"] > 0
    assert answers["diff"]["change"]["step_seconds"]["mid"] > 1
    assert answers["check"]["observed_seconds"]["mid"] == pytest.approx(0.2, rel=0.02)
    assert answers["check"]["verdict"] == ec.check("resnet18", "5it/s", device="V100", batch=64).verdict
    assert answers["oom"]["culprit"] == "another process"


@pytest.mark.parametrize(
    ("tool", "question", "message"),
    [
        ("forecast", {**JOB, "model": "os:system"}, "'os:system' would run Python code, which is not allowed here"),
        ("diff", {"base": JOB, "head": {**JOB, "model": "net.py:make"}}, "'net.py:make' would run Python code"),
        ("forecast", {**JOB, "model": "/etc/net.onnx"}, "files of the server are not read"),
        ("forecast", {**JOB, "model": "upload:0"}, "an upload belongs to a server"),
        ("forecast", {**JOB, "draw": True}, "options are those of the tool's schema"),
        ("check", {**JOB, "observed": "/etc/passwd"}, "has no number"),
        ("check", JOB, "observed must be given, such as 1.2it/s"),
        ("check", {**JOB, "observed": "2k tokens/s"}, "counts tokens, and resnet18 takes images"),
        ("oom", {"message": "it crashed"}, "no out-of-memory message"),
        ("bench", {}, "no tool called 'bench'; known: advise, check, diff, forecast, oom, plan"),
    ],
)
def test_what_is_refused_is_an_error_in_one_sentence(tool: str, question: dict[str, Any], message: str) -> None:
    from mcp import Client

    from epochcast.surfaces.assistants.mcp_server import assistant_server

    async def ask() -> None:
        async with Client(assistant_server()) as client:
            result = await client.call_tool(tool, question)
            assert result.is_error
            text = str(getattr(result.content[0], "text", ""))
            assert message in text and "\n" not in text

    anyio.run(ask)


def test_only_verbs_that_change_nothing_are_tools() -> None:
    assert TOOLS.keys() == {"forecast", "advise", "plan", "diff", "check", "oom"}
