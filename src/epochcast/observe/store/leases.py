"""Leases: of several processes only the holder of the lease does the work.

A lease is acquired, or renewed, in one transaction by the clock of its holder; clocks of machines that share a database
may differ by a few seconds, so leases last much longer than that. The lease of a process that is killed expires, and
another process acquires it. So does one that would last impossibly long: it is from before the clock was set back.
"""

import time

from sqlalchemy import delete

from epochcast.observe.store.database_tables import leases
from epochcast.observe.store.insert_rows import upsert
from epochcast.observe.store.store import Store

# Clocks of machines that share a database differ by less.
MOST_APART_SECONDS = 60.0


def hold(store: Store, name: str, holder: str, seconds: float) -> bool:
    """Acquire or renew a lease; false where another process holds it."""
    now = time.time()
    values = {"name": name, "holder": holder, "until_seconds": now + seconds}
    with store.writing() as connection:
        statement = upsert(connection, leases).values(**values)
        statement = statement.on_conflict_do_update(
            index_elements=["name"],
            set_={"holder": holder, "until_seconds": now + seconds},
            where=(leases.c.holder == holder)
            | (leases.c.until_seconds < now)
            | (leases.c.until_seconds > now + seconds + MOST_APART_SECONDS),
        )
        return connection.execute(statement, execution_options={"preserve_rowcount": True}).rowcount > 0


def give_back(store: Store, name: str, holder: str) -> None:
    """Release a lease, so that another process can acquire it at once."""
    with store.writing() as connection:
        connection.execute(delete(leases).where(leases.c.name == name, leases.c.holder == holder))
