"""`epochcast check`"""

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from epochcast.errors import BadInput, OverLimit
from epochcast.observe.check.check_request import CheckRequest
from epochcast.surfaces.cli.command_line import Explain, Json, Wide, show
from epochcast.surfaces.cli.job_flags import JobArguments, job_command
from epochcast.surfaces.cli.neighbours_option import Neighbours, nearest_runs

STANDARD_INPUT = "-"
MOST_PASTED = 64 << 20
"""A longer log is read as a file, which keeps little of it in memory."""


def _of_process(arguments: Mapping[str, Any], is_alone: bool) -> list[str]:
    """The command line of the process of `--pid`."""
    from epochcast.observe.check.observed_process import RunningProcess, command_settings

    if (pid := arguments.get("pid")) is None:
        return []
    RunningProcess.of(int(pid))  # refuses one that does not run before what is missing of its job
    return [str(path) for path in command_settings(int(pid), is_alone)]


@job_command(
    epilog="Examples: epochcast check gpt2 --device 'RTX 3090' --batch 8 --observed 1.2it/s · "
    "epochcast check --job mine --observed train.log --tolerance 1.5x",
    needs=(("device",), ("batch", "global_batch")),
    requests=(CheckRequest,),
    more_settings=_of_process,
)
def check(
    arguments: JobArguments,
    request: CheckRequest,
    observed: Annotated[
        str | None,
        typer.Option(
            help="A speed like 39s/it, 1.2it/s, '2.1k tokens/s' or 12min/epoch; a log, a progress bar, a "
            "torch.profiler trace; - reads standard input.",
            show_default=False,
        ),
    ] = None,
    with_neighbours: Neighbours = False,
    explain: Explain = False,
    wide: Wide = False,
    as_json: Json = False,
) -> int:
    """Say whether a speed is normal for a job, and why it is not."""
    from epochcast import api

    if observed is None and request.pid is None:
        raise BadInput("Missing option '--observed' (or --pid); see: epochcast check --help")
    if observed == STANDARD_INPUT:
        observed = sys.stdin.read(MOST_PASTED)
    answer = api.check(arguments.model, observed, pid=request.pid, config=None, **arguments.options)

    nearest = nearest_runs(answer.forecast, with_neighbours)
    body = answer.as_dict() | ({"neighbours": [each.as_dict() for each in nearest]} if with_neighbours else {})

    def view() -> Any:
        from epochcast.surfaces import render

        return render.with_neighbours(render.speed_check(answer), nearest)

    show(body, as_json, view, explain=explain, wide=wide)
    return OverLimit.exit_code if answer.exceeds(request.tolerance) else 0
