"""The process that follows runs and sends messages, beside the server: `python -m
epochcast.surfaces.web.follower_process`.

Of all servers on one database the one with the lease does this work; when it ends, another one goes on. It is a process
of its own so that its work does not delay answers. It is not put behind others in the queue for the processor: what it
writes locks the database for a moment, and whoever reports would wait with it.
"""

import json
import logging
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

from epochcast.base.child_processes import end_with_parent
from epochcast.errors import EpochcastError
from epochcast.observe.store import notices
from epochcast.observe.store.leases import give_back, hold
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_opening import open_store
from epochcast.observe.store.store_rows import RunRow
from epochcast.surfaces.web.run_following import RunFollower
from epochcast.surfaces.web.webhooks import key_of, message_of, send

LEASE, LEASE_SECONDS = "follow runs", 15.0
PAUSE_SECONDS = 1.0

log = logging.getLogger("epochcast.surfaces.web.follower_process")


def main() -> None:
    """Follow until the parent ends. Database and webhooks come by standard input, where nobody else reads them."""
    end_with_parent(int(sys.argv[1]))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    settings = json.loads(sys.stdin.readline())
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    holder, urls = str(settings["holder"]), [str(url) for url in settings["webhooks"]]
    with open_store(settings["database"]) as store:
        try:
            follow(store, holder, urls)
        finally:
            give_back(store, LEASE, holder)


def follow(store: Store, holder: str, urls: list[str]) -> None:
    """The loop."""
    follower: RunFollower | None = None
    trouble = ""

    def happened(run: RunRow, event: str, facts: Mapping[str, Any]) -> None:
        for url in urls:
            notices.note(store, key_of(run, event, url), url, message_of(run, event, facts))

    while True:
        try:
            if hold(store, LEASE, holder, LEASE_SECONDS):
                follower = follower or RunFollower(store, happened)
                follower.pass_over(time.time(), time.monotonic())
                deliver(store, time.time())
            else:
                follower = None  # another one reads the reports now; what is known here grows old
            trouble = ""
        except EpochcastError as error:
            if str(error) != trouble:  # once, not every second while a disk is full or a database is away
                log.warning("runs are not followed now: %s", error)
            trouble = str(error)
        time.sleep(PAUSE_SECONDS)


def deliver(store: Store, now_seconds: float) -> None:
    """Send what waits."""
    for notice in notices.due(store, now_seconds):
        if send(notice):
            notices.sent(store, notice)
        else:
            notices.failed(store, notice, now_seconds)


if __name__ == "__main__":
    main()
