"""The jobs of a job file."""

from collections.abc import Sequence

from rich.console import RenderableType

from epochcast.predict.forecast.job_file import NamedJob
from epochcast.surfaces.render.table_parts import table


def jobs(file: str, rows: Sequence[tuple[NamedJob, str]]) -> RenderableType:
    """A row a job: what it trains, where, and what is wrong with it."""
    cells = [(job.name, str(job.job.model), _where(job), _batch(job), problem or "fine") for job, problem in rows]
    return table(f"jobs of {file}", "name | model | where | > batch | check", cells or [("no jobs", "", "", "", "")])


def _where(job: NamedJob) -> str:
    device = job.where.device
    return "" if device is None else f"{job.where.gpus} × {device}"


def _batch(job: NamedJob) -> str:
    if job.job.global_batch is not None:
        return f"{job.job.global_batch:,} in total"
    return "" if job.job.batch is None else f"{job.job.batch:,} per GPU"
