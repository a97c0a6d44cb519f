"""The jobs of a timetable as files for those who run them: tasks of SkyPilot, Jobs for a queue of Kueue.

A file for each job, numbered in the order of the plan, with the machine and the GPUs with which it begins. Its time
limit is the high end of its run there. Comments say what it waits for and when it is planned.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from epochcast.decide.handover.kueue_job import kueue
from epochcast.decide.handover.resource_request import Request, request_for
from epochcast.decide.handover.skypilot_task import CLOUDS, skypilot
from epochcast.errors import BadInput, EpochcastError
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.machines import find_instance
from epochcast.schedule.queue_document import RefusedJob
from epochcast.schedule.timetable import Timetable, TimetableRow

Write = Callable[[Request], str]


@dataclass(frozen=True)
class HandoverFiles:
    """Texts by the names of their files, and jobs that have none, with the reason."""

    texts: Mapping[str, str]
    refused: tuple[RefusedJob, ...]


def skypilot_tasks(answer: Timetable) -> HandoverFiles:
    """A task of SkyPilot for each job."""
    return _files(answer, skypilot)


def kueue_jobs(answer: Timetable, *, queue: str | None, image: str | None) -> HandoverFiles:
    """A Job of Kubernetes for each job, for a local queue of Kueue."""
    return _files(answer, lambda request: kueue(request, queue=queue, image=image))


def _files(answer: Timetable, write: Write) -> HandoverFiles:
    texts: dict[str, str] = {}
    refused = []
    for number, line in enumerate(answer.lines, 1):
        try:
            request = _request(answer, line)
            texts[f"{number:03}-{request.name}.yaml"] = write(request)
        except EpochcastError as error:
            refused.append(RefusedJob(line.job, f"job {line.job!r}: {error}"))
    return HandoverFiles(texts, tuple(refused))


def _request(answer: Timetable, line: TimetableRow) -> Request:
    assert answer.workload is not None
    if line.job not in answer.commands:
        raise BadInput("it has no start command")
    first = line.stays[0]
    kind = answer.workload.fleet.by_name[first.node_type]
    job = next(job for job in answer.workload.jobs if job.id == line.job)
    instance = None if kind.instance is None or kind.is_in_house else find_instance(kind.instance)
    if instance is not None and instance.cloud not in CLOUDS:
        instance = None
    later = list(dict.fromkeys(f"{stay.choice.gpus} × {stay.node_type}" for stay in line.stays))
    clock = answer.clock
    notes = [
        f"planned {clock.text(line.start.mid)} to {clock.text(line.end.mid)}, "
        f"at the latest {clock.text(line.end.high)} ({answer.coverage:.0%}); due {clock.text(line.deadline_seconds)}",
    ]
    if line.wait is not None:
        notes.append(f"waits for {line.wait.text(clock)}")
    if len(later) > 1:
        notes.append(f"the plan changes its GPUs on the way: {', then '.join(later)}; this file has the first")
    return request_for(
        line.job,
        find_device(first.choice.device),
        first.choice.gpus,
        job.seconds[first.choice],
        command=answer.commands.get(line.job),
        instance=instance,
        is_spot=kind.interruptions_per_hour > 0,
        notes=tuple(notes),
    )
