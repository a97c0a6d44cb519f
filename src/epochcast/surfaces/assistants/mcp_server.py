"""The Model Context Protocol over standard input and output, by the `mcp` SDK (extra `mcp`).

A question that cannot be answered comes back as a result with `is_error` and one sentence, so that an assistant can
correct itself. Questions are answered one at a time, beside the loop that reads messages.
"""

import json
from typing import TYPE_CHECKING, Any

from epochcast import __version__
from epochcast.errors import EpochcastError, MissingExtra
from epochcast.surfaces.assistants.assistant_tools import TOOLS, AssistantAnswers

if TYPE_CHECKING:
    from mcp.server import Server

INSTRUCTIONS = (
    "epochcast forecasts deep-learning training jobs without a GPU: time, memory and dollars, with 90 % intervals. "
    "Use forecast before a job runs, check when a speed looks wrong, oom for an out-of-memory error, plan for what to "
    "rent, advise for the batch and the data loader, diff for a change of the model or its settings. Report the "
    "interval (low, high) beside the middle value, and what an answer lists under `assumed`."
)


def serve_assistants() -> None:
    """Answer one client until it closes standard input."""
    try:
        import anyio
        from mcp.server.stdio import stdio_server
    except ImportError:
        raise MissingExtra("mcp") from None
    server = assistant_server()

    async def run() -> None:
        async with stdio_server() as (questions, answers):
            await server.run(questions, answers, server.create_initialization_options())

    anyio.run(run)


def assistant_server() -> "Server[Any]":
    """A server with all tools, on no transport yet."""
    from anyio import CapacityLimiter, to_thread
    from mcp import types
    from mcp.server import Server

    answering, one_at_a_time = AssistantAnswers(), CapacityLimiter(1)
    only_reads = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    listed = types.ListToolsResult(
        tools=[
            types.Tool(
                name=tool.name,
                description=tool.about,
                input_schema=dict(tool.question_schema),
                output_schema=tool.answer_schema,
                annotations=only_reads,
            )
            for tool in TOOLS.values()
        ]
    )

    async def list_tools(_context: object, _params: object) -> types.ListToolsResult:
        return listed

    async def call_tool(_context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            answer = await to_thread.run_sync(
                answering.answer, params.name, params.arguments or {}, limiter=one_at_a_time
            )
        except EpochcastError as error:
            return types.CallToolResult(content=[types.TextContent(text=str(error))], is_error=True)
        text = types.TextContent(text=json.dumps(answer, ensure_ascii=False))
        return types.CallToolResult(content=[text], structured_content=answer)

    return Server(
        "epochcast",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
