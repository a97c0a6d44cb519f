"""What Alembic runs around a migration: the connection and the transaction are those of `schema.migrate`."""

from alembic import context

from epochcast.observe.store.database_tables import metadata


def run() -> None:
    """Run the migrations that Alembic chose."""
    given = context.config.attributes
    context.configure(connection=given["connection"], target_metadata=metadata, version_table=given["version_table"])
    context.run_migrations()


if hasattr(context, "config"):  # Alembic imports this module to run it; others only read it
    run()
