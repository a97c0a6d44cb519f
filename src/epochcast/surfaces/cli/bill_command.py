"""`epochcast bill`"""

from typing import Annotated, Any

import typer

from epochcast.surfaces.cli.command_line import FORECASTS, Json, app, show
from epochcast.surfaces.cli.database_options import Database
from epochcast.surfaces.cli.help_groups import GroupedCommand


@app.command(
    cls=GroupedCommand,
    rich_help_panel=FORECASTS,
    epilog="Examples: epochcast bill imagenet-3 · epochcast bill imagenet-3 --paid 41.20 --json",
)
def bill(
    run: Annotated[str, typer.Argument(help="A tracked run, a name from `epochcast runs`.")],
    paid: Annotated[str | None, typer.Option(help="What the invoice says, like $41.20.")] = None,
    database: Database = None,
    as_json: Json = False,
) -> int:
    """Compare a run's forecast, tracked and billed cost, and say what the difference comes from."""
    from epochcast.errors import BadInput
    from epochcast.observe.store.run_bill import bill_of
    from epochcast.observe.store.store_location import database_url, shown_url
    from epochcast.observe.store.store_opening import existing_store
    from epochcast.observe.store.stored_run import refreshed
    from epochcast.units import parse_dollars

    paid_dollars = None if paid is None else parse_dollars(paid)
    store = existing_store(database)
    if store is None:
        raise BadInput(f"no run called {run!r}: there is no store yet at {shown_url(database_url(database))}")
    with store:
        answer = bill_of(store, refreshed(store, store.run(run)), paid_dollars)

    def view() -> Any:
        from epochcast.surfaces import render

        return render.bill(answer)

    show(answer.as_dict(), as_json, view)
    return 0
