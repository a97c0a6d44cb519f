"""How a list of runs is asked for: filters, order and page, as parameters of an address."""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel

from epochcast.errors import UnknownName
from epochcast.observe.store.row_values import RunFilter
from epochcast.observe.store.run_order import NEWEST_FIRST, RUN_ORDERS
from epochcast.observe.store.store_rows import STATES

SILENT = "silent"
"""A state that no run has: it is running, and nobody hears of it."""
MOST_FIRST = 1_000_000
Text = Annotated[str | None, Query(max_length=200)]


class RunListQuery(BaseModel):
    """The parameters."""

    state: list[str] = []
    job: Text = None
    device: Text = None
    project: Text = None
    tag: Text = None
    search: Annotated[
        str | None, Query(max_length=200, description="Words of its name, title, tags, device or host.")
    ] = None
    archived: Annotated[bool, Query(description="Archived runs instead of the others.")] = False
    order: Annotated[str, Query(description=", ".join(RUN_ORDERS))] = NEWEST_FIRST
    ascending: bool = False
    before: Annotated[int | None, Query(ge=0, le=2**62, description="`next` of the page before, newest first.")] = None
    first: Annotated[int, Query(ge=0, le=MOST_FIRST, description="Runs of this order that are passed over.")] = 0
    most: Annotated[int, Query(ge=1, le=200)] = 50

    def filter(self, project: str | None, now_seconds: float) -> RunFilter:
        """For the store; a caller with a project of their own gets its runs alone."""
        for name in self.state:
            if name not in (*STATES, SILENT):
                raise UnknownName("state of a run", name, (*STATES, SILENT))
        if self.order not in RUN_ORDERS:
            raise UnknownName("order of runs", self.order, RUN_ORDERS)
        is_silent = SILENT in self.state
        return RunFilter(
            states=() if is_silent else tuple(self.state),
            job_name=self.job,
            device=self.device,
            project=project if project is not None else self.project,
            tag=self.tag,
            search=self.search,
            is_archived=self.archived,
            silent_at_seconds=now_seconds if is_silent else None,
            order=self.order,
            is_ascending=self.ascending,
            before_id=self.before,
            first=self.first,
            most=self.most + 1,
        )
