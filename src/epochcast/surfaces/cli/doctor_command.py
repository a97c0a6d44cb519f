"""`epochcast doctor`"""

from typing import Any

from epochcast.surfaces.cli.command_line import HELP, Json, app, show
from epochcast.surfaces.cli.help_groups import GroupedCommand


@app.command(epilog="Example: epochcast doctor --json", cls=GroupedCommand, rich_help_panel=HELP)
def doctor(as_json: Json = False) -> int:
    """Check the installation. Shows what is missing, where files are and how old they are. Lists problems at the end
    (`problems` of --json); they do not change the exit code.
    """
    from datetime import UTC, datetime
    from pathlib import Path

    from epochcast import __version__
    from epochcast.surfaces.doctor import examine

    report = examine(__version__, Path.cwd(), datetime.now(UTC).date())

    def view() -> Any:
        from epochcast.surfaces import render

        return render.doctor(report)

    show(report.as_dict(), as_json, view)
    return 0
