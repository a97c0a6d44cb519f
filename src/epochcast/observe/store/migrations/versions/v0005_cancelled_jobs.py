"""When somebody asked that a job of a queue be cancelled."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the column."""
    op.add_column("queue_jobs", sa.Column("cancel_at_seconds", sa.Double(), nullable=True))
