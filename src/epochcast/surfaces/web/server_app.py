"""The application: routes, the guard around them, and the life of what runs behind."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from epochcast import __version__
from epochcast.surfaces.web import catalogue_routes as names
from epochcast.surfaces.web import evidence, pages, problems, question_pages, queue_routes, run_pages, token_routes
from epochcast.surfaces.web import run_routes as runs
from epochcast.surfaces.web import verb_routes as asking
from epochcast.surfaces.web.openapi import with_answers
from epochcast.surfaces.web.request_guard import Guard
from epochcast.surfaces.web.server_settings import ServerSettings
from epochcast.surfaces.web.server_state import make_running


def make_app(settings: ServerSettings) -> FastAPI:
    """The application of a server; the store is opened here, processes start with it."""
    running = make_running(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await running.start()
        try:
            yield
        finally:
            await running.end()

    app = FastAPI(
        title="epochcast",
        version=__version__,
        description="How long a training job takes, what it needs and what it costs; and when running jobs end.",
        lifespan=lifespan,
        docs_url=None,  # pages of others' scripts
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
    )
    app.state.running = running
    problems.install(app, pages.error_page)
    for part in (
        runs,
        asking,
        queue_routes,
        names,
        evidence,
        token_routes,
        run_pages,
        question_pages,
        pages,
    ):  # what is asked most often is looked for first
        app.include_router(part.router)
    app.include_router(names.itself)
    describe = app.openapi
    setattr(app, "openapi", lambda: with_answers(describe()))  # noqa: B010
    app.add_middleware(Guard, limits=settings.limits, metrics=running.metrics)
    return app
