"""What people say about runs (title, tags, archive, shared card), why a run failed, and when a token was last used."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the columns."""
    op.add_column("runs", sa.Column("title", sa.String(length=200), nullable=True))
    op.add_column("runs", sa.Column("tags", sa.String(length=1000), nullable=True))
    op.add_column("runs", sa.Column("archived_at_seconds", sa.Double(), nullable=True))
    op.add_column("runs", sa.Column("card_key", sa.String(length=64), nullable=True))
    op.add_column("runs", sa.Column("end_reason", sa.String(length=1000), nullable=True))
    op.create_index(op.f("ix_runs_archived_at_seconds"), "runs", ["archived_at_seconds"], unique=False)
    op.create_index(op.f("ix_runs_card_key"), "runs", ["card_key"], unique=True)
    op.add_column("tokens", sa.Column("used_at_seconds", sa.Double(), nullable=True))
