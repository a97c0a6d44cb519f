"""Tokens, leases, notices, and the project of a run."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the tables and the column."""
    op.create_table(
        "tokens",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("scopes", sa.String(length=32), nullable=False),
        sa.Column("project", sa.String(length=200), nullable=True),
        sa.Column("added_at_seconds", sa.Double(), nullable=False),
        sa.Column("ended_at_seconds", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("digest", name=op.f("uq_tokens_digest")),
        sa.UniqueConstraint("name", name=op.f("uq_tokens_name")),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("holder", sa.String(length=200), nullable=False),
        sa.Column("until_seconds", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
    op.create_table(
        "notices",
        sa.Column("key", sa.String(length=400), nullable=False),
        sa.Column("to", sa.String(length=1000), nullable=False),
        sa.Column("message", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("next_at_seconds", sa.Double(), nullable=False),
        sa.Column("added_at_seconds", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_notices")),
    )
    op.create_index(op.f("ix_notices_state"), "notices", ["state"], unique=False)
    op.add_column("runs", sa.Column("project", sa.String(length=200), nullable=True))
    op.create_index(op.f("ix_runs_project"), "runs", ["project"], unique=False)
