"""`epochcast runs`"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.base.record import plain
from epochcast.surfaces.cli.command_line import FORECASTS, Json, Wide, app, show
from epochcast.surfaces.cli.database_options import Database
from epochcast.surfaces.cli.help_groups import GroupedCommand

if TYPE_CHECKING:
    from epochcast.observe.store.store import Store
    from epochcast.observe.store.store_rows import RunRow


@app.command(
    cls=GroupedCommand,
    rich_help_panel=FORECASTS,
    epilog="Examples: epochcast runs · epochcast runs --state running --device V100 · epochcast runs imagenet-3 --json",
)
def runs(
    name: Annotated[str | None, typer.Argument(help="Show one run in detail.", show_default=False)] = None,
    state: Annotated[
        list[str] | None, typer.Option(help="queued, running, ended, failed, stopped; repeatable.")
    ] = None,
    job: Annotated[str | None, typer.Option(help="Runs of this job of epochcast.toml.")] = None,
    model: Annotated[str | None, typer.Option(help="Runs that train this model.")] = None,
    device: Annotated[str | None, typer.Option(help="Runs on this device.")] = None,
    since: Annotated[str | None, typer.Option(help="Runs that were heard of within this time, like 7d.")] = None,
    most: Annotated[int, typer.Option(help="Show at most this many runs, newest first.", min=1)] = 50,
    database: Database = None,
    wide: Wide = False,
    as_json: Json = False,
) -> int:
    """List tracked runs: progress, remaining time, state."""
    from epochcast.errors import BadInput
    from epochcast.observe.store.store_location import database_url, shown_url
    from epochcast.observe.store.store_opening import existing_store
    from epochcast.observe.store.stored_run import refreshed

    wanted = _wanted(state or [], job, model, device, since, most)
    store = existing_store(database)
    where = shown_url(database_url(database))
    if store is None:
        if name is not None:
            raise BadInput(f"no run called {name!r}: there is no store yet at {where}")
        return _listed(where, [], as_json, wide)
    with store:
        if name is not None:
            return _shown_run(store, refreshed(store, store.run(name)), as_json)
        return _listed(where, [refreshed(store, run) for run in store.runs(wanted)], as_json, wide)


def _wanted(
    states: list[str], job: str | None, model: str | None, device: str | None, since: str | None, most: int
) -> Any:
    import time

    from epochcast.errors import UnknownName
    from epochcast.hardware.catalogue import find_device
    from epochcast.observe.store.row_values import RunFilter
    from epochcast.observe.store.store_rows import STATES
    from epochcast.units import parse_seconds

    for state in states:
        if state not in STATES:
            raise UnknownName("state of a run", state, STATES)
    return RunFilter(
        states=states,
        job_name=job,
        model=model,
        device=None if device is None else find_device(device).name,
        seen_after_seconds=None if since is None else time.time() - parse_seconds(since, "--since", unit="d"),
        most=most,
    )


def _listed(where: str, rows: "list[RunRow]", as_json: bool, wide: bool) -> int:
    def view() -> Any:
        from epochcast.surfaces import render

        return render.runs(where, rows)

    show({"database": where, "runs": [run.as_dict() for run in rows]}, as_json, view, wide=wide)
    return 0


def _shown_run(store: "Store", run: "RunRow", as_json: bool) -> int:
    job = None if run.job_id is None else store.job(run.job_id)
    attempts = store.attempts(run.id)
    rows = store.count_observations(run.id)

    def view() -> Any:
        from epochcast.surfaces import render

        return render.run(run, attempts, rows)

    answer = {
        **run.as_dict(),
        "options": None if job is None else dict(job.job),
        "attempts": plain(attempts),
        "observations": rows,
        "progress": None if run.standing is None else run.standing.as_dict(),
    }
    show(answer, as_json, view)
    return 0
