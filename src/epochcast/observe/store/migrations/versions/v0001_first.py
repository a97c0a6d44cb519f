"""Jobs, runs, attempts, forecasts, observations, measurements."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "jobs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("model", sa.String(length=1000), nullable=False),
        sa.Column("job", sa.JSON(), nullable=False),
        sa.Column("added_at_seconds", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("fingerprint", name=op.f("uq_jobs_fingerprint")),
    )
    op.create_index(op.f("ix_jobs_model"), "jobs", ["model"], unique=False)
    op.create_table(
        "machines",
        sa.Column("machine", sa.String(length=200), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("machine", name=op.f("pk_machines")),
    )
    op.create_table(
        "measurements",
        sa.Column("machine", sa.String(length=200), nullable=False),
        sa.Column("key", sa.String(length=1000), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("line", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["machine"], ["machines.machine"], name=op.f("fk_measurements_machine")),
        sa.PrimaryKeyConstraint("machine", "key", name=op.f("pk_measurements")),
    )
    op.create_index(op.f("ix_measurements_kind"), "measurements", ["kind"], unique=False)
    op.create_table(
        "runs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("job_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("job_name", sa.String(length=200), nullable=True),
        sa.Column("device", sa.String(length=200), nullable=True),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("nodes", sa.Integer(), nullable=False),
        sa.Column("host", sa.String(length=200), nullable=True),
        sa.Column("place", sa.JSON(), nullable=False),
        sa.Column("source", sa.String(length=1000), nullable=True),
        sa.Column("format", sa.String(length=200), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("added_at_seconds", sa.Double(), nullable=False),
        sa.Column("started_at_seconds", sa.Double(), nullable=True),
        sa.Column("seen_at_seconds", sa.Double(), nullable=False),
        sa.Column("ended_at_seconds", sa.Double(), nullable=True),
        sa.Column("step", sa.Double(), nullable=True),
        sa.Column("total_steps", sa.Double(), nullable=True),
        sa.Column("step_seconds", sa.Double(), nullable=True),
        sa.Column("elapsed_seconds", sa.Double(), nullable=True),
        sa.Column("down_seconds", sa.Double(), nullable=True),
        sa.Column("forecast_step_seconds", sa.Double(), nullable=True),
        sa.Column("forecast_total_seconds", sa.Double(), nullable=True),
        sa.Column("progress", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_runs_job_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("key", name=op.f("uq_runs_key")),
        sa.UniqueConstraint("name", name=op.f("uq_runs_name")),
    )
    op.create_index(op.f("ix_runs_device"), "runs", ["device"], unique=False)
    op.create_index(op.f("ix_runs_job_id"), "runs", ["job_id"], unique=False)
    op.create_index(op.f("ix_runs_seen_at_seconds"), "runs", ["seen_at_seconds"], unique=False)
    op.create_index(op.f("ix_runs_state"), "runs", ["state"], unique=False)
    op.create_table(
        "attempts",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("engine", sa.String(length=200), nullable=True),
        sa.Column("engine_id", sa.String(length=200), nullable=True),
        sa.Column("host", sa.String(length=200), nullable=True),
        sa.Column("started_at_seconds", sa.Double(), nullable=True),
        sa.Column("ended_at_seconds", sa.Double(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("thinned_step", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_attempts_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "attempt", name=op.f("pk_attempts")),
    )
    op.create_index("ix_attempts_engine_id", "attempts", ["engine", "engine_id"], unique=False)
    op.create_table(
        "forecasts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String(length=32), nullable=False),
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("job_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("made_at_seconds", sa.Double(), nullable=False),
        sa.Column("forecast", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_forecasts_job_id")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_forecasts_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_forecasts")),
        sa.UniqueConstraint("key", name=op.f("uq_forecasts_key")),
    )
    op.create_index(op.f("ix_forecasts_job_id"), "forecasts", ["job_id"], unique=False)
    op.create_index(op.f("ix_forecasts_run_id"), "forecasts", ["run_id"], unique=False)
    op.create_table(
        "observations",
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("step", sa.Double(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("phase", sa.SmallInteger(), nullable=False),
        sa.Column("clock_seconds", sa.Double(), nullable=True),
        sa.Column("step_seconds", sa.Double(), nullable=True),
        sa.Column("data_seconds", sa.Double(), nullable=True),
        sa.Column("loss", sa.Double(), nullable=True),
        sa.Column("epoch", sa.Double(), nullable=True),
        sa.Column("total_steps", sa.Double(), nullable=True),
        sa.Column("total_epochs", sa.Double(), nullable=True),
        sa.Column("steps_per_epoch", sa.Double(), nullable=True),
        sa.Column("remaining_seconds", sa.Double(), nullable=True),
        sa.Column("reports", sa.Integer(), nullable=False),
        sa.Column("received_at_seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_observations_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "attempt", "step", "rank", "phase", name=op.f("pk_observations")),
        sqlite_with_rowid=False,
    )
