"""`--neighbours` of commands that forecast a job."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from epochcast.measure.neighbours.nearest_runs import Neighbour
    from epochcast.predict.forecast.forecast import Forecast

Neighbours = Annotated[
    bool, typer.Option("--neighbours", help="Show the measured public runs nearest to the job, with their sources.")
]


def nearest_runs(forecast: "Forecast", is_asked: bool) -> "tuple[Neighbour, ...]":
    """The runs where they are asked for; none otherwise."""
    if not is_asked:
        return ()
    from epochcast.measure.neighbours.nearest_runs import neighbours

    return neighbours(forecast)
