"""How long recorded pauses took, and what they were."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the columns; of reports that are there already nobody knows."""
    op.add_column("observations", sa.Column("pause_seconds", sa.Double(), nullable=True))
    op.add_column("observations", sa.Column("what", sa.String(length=200), nullable=True))
