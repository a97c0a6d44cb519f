"""What Alembic runs around a migration: the connection and the transaction are those of `schema.migrate`."""

from alembic import context

from epochcast.observe.store.database_tables import metadata


def run() -> None:
    """Run the migrations that Alembic chose."""
    context.configure(target_metadata=metadata, **context.config.attributes)
    context.run_migrations()


if hasattr(context, "config"):  # Alembic imports this module to run it; others only read it
    run()
