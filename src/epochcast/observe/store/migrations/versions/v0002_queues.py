"""Queues that a scheduler works off: jobs, machines, starts."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "queues",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("fleet", sa.JSON(), nullable=False),
        sa.Column("engine", sa.String(length=200), nullable=True),
        sa.Column("policy", sa.String(length=200), nullable=True),
        sa.Column("added_at_seconds", sa.Double(), nullable=False),
        sa.Column("seen_at_seconds", sa.Double(), nullable=False),
        sa.Column("holder", sa.String(length=200), nullable=True),
        sa.Column("held_until_seconds", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_queues")),
        sa.UniqueConstraint("key", name=op.f("uq_queues_key")),
        sa.UniqueConstraint("name", name=op.f("uq_queues_name")),
    )
    op.create_table(
        "queue_jobs",
        sa.Column("queue_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job", sa.String(length=200), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("row", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("left_fraction", sa.Double(), nullable=False),
        sa.Column("pace", sa.Double(), nullable=False),
        sa.Column("is_observed", sa.Boolean(), nullable=False),
        sa.Column("owed_seconds", sa.Double(), nullable=False),
        sa.Column("served_gpu_seconds", sa.Double(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("told_at_seconds", sa.Double(), nullable=False),
        sa.Column("ended_at_seconds", sa.Double(), nullable=True),
        sa.Column("reason", sa.String(length=1000), nullable=True),
        sa.ForeignKeyConstraint(["queue_id"], ["queues.id"], name=op.f("fk_queue_jobs_queue_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("queue_id", "job", name=op.f("pk_queue_jobs")),
    )
    op.create_index(op.f("ix_queue_jobs_state"), "queue_jobs", ["state"], unique=False)
    op.create_table(
        "queue_machines",
        sa.Column("queue_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("node_type", sa.String(length=200), nullable=False),
        sa.Column("node", sa.String(length=200), nullable=True),
        sa.Column("rented_at_seconds", sa.Double(), nullable=False),
        sa.Column("returned_at_seconds", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["queue_id"], ["queues.id"], name=op.f("fk_queue_machines_queue_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("queue_id", "number", name=op.f("pk_queue_machines")),
    )
    op.create_table(
        "queue_starts",
        sa.Column("queue_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job", sa.String(length=200), nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("engine_id", sa.String(length=200), nullable=True),
        sa.Column("machine", sa.Integer(), nullable=False),
        sa.Column("device", sa.String(length=200), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("is_alone", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("asked_at_seconds", sa.Double(), nullable=False),
        sa.Column("stop_at_seconds", sa.Double(), nullable=True),
        sa.Column("ended_at_seconds", sa.Double(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("end", sa.String(length=16), nullable=True),
        sa.ForeignKeyConstraint(
            ["queue_id", "job"],
            ["queue_jobs.queue_id", "queue_jobs.job"],
            name=op.f("fk_queue_starts_queue_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("queue_id", "job", "attempt", name=op.f("pk_queue_starts")),
        sa.UniqueConstraint("key", name=op.f("uq_queue_starts_key")),
    )
    op.create_index(op.f("ix_queue_starts_state"), "queue_starts", ["state"], unique=False)
