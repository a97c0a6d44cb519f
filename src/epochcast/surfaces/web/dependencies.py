"""What routes depend on: the running server, and a caller who may do what the route does."""

from typing import Annotated

from fastapi import Depends, Request

from epochcast.surfaces.web.access import Caller
from epochcast.surfaces.web.server_state import Running


async def running_of(request: Request) -> Running:
    """The running server. Not a plain function: FastAPI would run that in a thread, which costs more than the rest."""
    running: Running = request.app.state.running
    return running


State = Annotated[Running, Depends(running_of)]


async def reader(request: Request, running: State) -> Caller:
    """Somebody who may read."""
    return await running.access.caller(request, "read")


async def writer(request: Request, running: State) -> Caller:
    """Somebody who may write."""
    return await running.access.caller(request, "write")


Reader = Annotated[Caller, Depends(reader)]
Writer = Annotated[Caller, Depends(writer)]
