"""Inside a worker: queues, planned and played. What would run code or read files of the server is refused."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from epochcast.errors import BadInput
from epochcast.surfaces.web.api_verbs import check_plain

if TYPE_CHECKING:
    from epochcast.queues import ReadQueue

MOST_JOBS, MOST_NODES = 500, 1_000
# Draws of an interval: enough for its ends at this size, and quick.
DRAWS = 39
# What a job of a queue file may say here; commands and folders are of those who run it.
_NOT_HERE = ("command", "folder", "log", "env", "checkpoint_folder", "job")


def kept_queue(question: Mapping[str, Any]) -> dict[str, Any]:
    """A queue of the store as it would go on from now."""
    from epochcast.observe.store.store_opening import open_store
    from epochcast.queues import stored_view
    from epochcast.schedule.schedule_request import ScheduleRequest

    with open_store(question["database"]) as store:
        view = stored_view(store, str(question["name"]), datetime.now().astimezone())
    return view.timetable(ScheduleRequest(draws=DRAWS)).as_dict()


def sent_queue(question: Mapping[str, Any]) -> dict[str, Any]:
    """A queue that was sent, from now on; the options of a `ScheduleRequest` are keys beside its own."""
    from epochcast.schedule.schedule_request import ScheduleRequest

    document, options = _split(question.get("queue"), ScheduleRequest)
    request = ScheduleRequest(**{"draws": DRAWS, **options})
    at = request.at or datetime.now().astimezone()
    return _read(document, at).view(at, request.error).timetable(request).as_dict()


def simulated(question: Mapping[str, Any]) -> dict[str, Any]:
    """A workload under policies; the options of a `SimulationRequest` are keys beside its own."""
    from epochcast.schedule.policy_comparison import compare_policies
    from epochcast.schedule.schedule_request import SimulationRequest

    document, options = _split(question.get("queue"), SimulationRequest)
    request = SimulationRequest(**options)
    read = _read(document, datetime.now().astimezone())
    return compare_policies(read.workload, request, read.rules).as_dict()


def _split(document: object, kind: type) -> tuple[object, dict[str, Any]]:
    """What was sent, as a queue and as options of a request; what both have is the queue's."""
    from epochcast.base.options import options_of
    from epochcast.schedule.queue_document import QueueDocument

    if not isinstance(document, Mapping):
        return document, {}
    of_queue = {option.name for option in options_of(QueueDocument)}
    declared = {option.name: option for option in options_of(kind) if option.name not in of_queue}
    options = {key: declared[key].read(value) for key, value in document.items() if key in declared}
    return {key: value for key, value in document.items() if key not in declared}, options


def _read(document: object, at: datetime) -> "ReadQueue":
    from epochcast.predict.forecast.session import Session
    from epochcast.queues import read_queue

    return read_queue(_checked(document), at, session=Session(allow_code=False))


def _checked(document: object) -> Mapping[str, Any]:
    if not isinstance(document, Mapping) or not isinstance(document.get("jobs"), list):
        raise BadInput("a queue is an object with nodes, node_types and a list of jobs")
    if len(document["jobs"]) > MOST_JOBS:
        raise BadInput(f"a queue has at most {MOST_JOBS} jobs here, got {len(document['jobs'])}")
    nodes = document.get("nodes")
    if isinstance(nodes, int) and nodes > MOST_NODES:
        raise BadInput(f"a queue has at most {MOST_NODES:,} nodes here, got {nodes:,}")
    for number, job in enumerate(document["jobs"]):
        if not isinstance(job, Mapping):
            raise BadInput(f"job {number} is no object")
        for key in _NOT_HERE:
            if key in job:
                raise BadInput(f"job {number}: {key} is of files that run; leave it out here")
        if "model" in job:
            check_plain(job)
    return document
