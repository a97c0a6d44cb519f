"""What a server has while it runs: store, workers, the door, and what is counted. One object, made when it starts."""

import os
import socket
from dataclasses import dataclass
from uuid import uuid4

from epochcast.observe.store.store import Store
from epochcast.observe.store.store_opening import open_store
from epochcast.surfaces.web.access import Access
from epochcast.surfaces.web.answer_cache import AnswerCache
from epochcast.surfaces.web.event_stream import Live
from epochcast.surfaces.web.follower_supervisor import FollowerSupervisor
from epochcast.surfaces.web.metrics import Metrics
from epochcast.surfaces.web.report_ingest import Ingest
from epochcast.surfaces.web.server_settings import ServerSettings
from epochcast.surfaces.web.static_files import StaticFiles
from epochcast.surfaces.web.worker_pool import Workers


@dataclass(slots=True)
class Running:
    """A running server."""

    settings: ServerSettings
    store: Store
    workers: Workers
    parsers: Workers
    answers: AnswerCache
    access: Access
    ingest: Ingest
    live: Live
    metrics: Metrics
    beside: FollowerSupervisor
    statics: StaticFiles
    has_room: bool = True
    """Whether the disk took the last thing that was written to it."""

    async def start(self) -> None:
        """Start processes and tasks."""
        await self.workers.start()
        await self.parsers.start()
        self.ingest.start()
        self.live.start()
        self.beside.start()
        self.statics.start()

    async def end(self) -> None:
        """End them; rows that wait are written first."""
        await self.ingest.end()
        await self.statics.end()
        await self.beside.end()
        await self.live.end()
        await self.workers.end()
        await self.parsers.end()
        self.store.close()


def make_running(settings: ServerSettings) -> Running:
    """A server that has not started yet."""
    store, limits = open_store(settings.database), settings.limits
    metrics, uploads = Metrics(), str(settings.folder)
    workers = Workers(settings.workers, uploads, limits.worker_bytes)
    return Running(
        settings=settings,
        store=store,
        workers=workers,
        parsers=Workers(limits.parsers, uploads, limits.worker_bytes),
        answers=AnswerCache(workers, limits.answer_seconds, metrics),
        access=Access(settings, store),
        ingest=Ingest(store),
        live=Live(store, limits.streams, metrics),
        metrics=metrics,
        beside=FollowerSupervisor(store.url, own_name(), settings.webhooks),
        statics=StaticFiles(),
    )


def own_name() -> str:
    """What tells this server from others on the same database."""
    return f"{socket.gethostname()[:100]}-{os.getpid()}-{uuid4().hex[:8]}"
