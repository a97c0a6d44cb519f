"""`epochcast mcp`"""

from epochcast.surfaces.cli.command_line import FORECASTS, app


@app.command(
    epilog='Example: claude mcp add epochcast -- epochcast mcp · in a client\'s JSON: {"command": "epochcast", '
    '"args": ["mcp"]}',
    rich_help_panel=FORECASTS,
)
def mcp() -> int:
    """Offer forecast, advise, plan, diff, check and oom to an assistant (Model Context Protocol)."""
    from epochcast.surfaces.assistants.mcp_server import serve_assistants

    serve_assistants()
    return 0
