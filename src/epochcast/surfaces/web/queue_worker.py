"""Inside a worker: queues, planned and played. What would run code or read files of the server is refused."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from epochcast.errors import BadInput
from epochcast.surfaces.web.api_verbs import check_plain

MOST_JOBS, MOST_NODES = 500, 1_000
# Draws of an interval: enough for its ends at this size, and quick.
DRAWS = 39
# What a job of a queue file may say here; commands and folders are of those who run it.
_NOT_HERE = ("command", "folder", "log", "env", "checkpoint", "job")


def kept_queue(asked: Mapping[str, Any]) -> dict[str, Any]:
    """A queue of the store as it would go on from now."""
    from epochcast.observe.store.store_opening import open_store
    from epochcast.queues import kept_view

    with open_store(asked["database"]) as store:
        view = kept_view(store, str(asked["name"]), datetime.now().astimezone())
    return _planned(view)


def sent_queue(asked: Mapping[str, Any]) -> dict[str, Any]:
    """A queue that was sent, from now on."""
    at = datetime.now().astimezone()
    return _planned(_read(asked.get("queue"), at).view(at, None))


def simulated(asked: Mapping[str, Any]) -> dict[str, Any]:
    """A workload under policies."""
    from epochcast.schedule.policies.policy_table import DEFAULT, Switches
    from epochcast.schedule.policy_comparison import compare
    from epochcast.schedule.simulator import SimulationRules

    document = asked.get("queue")
    policies = document.get("policies", [DEFAULT]) if isinstance(document, Mapping) else [DEFAULT]
    if not isinstance(policies, list) or not all(isinstance(name, str) for name in policies) or not policies:
        raise BadInput("policies must be a list of names")
    workload = _read(document, datetime.now().astimezone()).workload
    return compare(workload, list(dict.fromkeys(policies)), [Switches()], SimulationRules(), True, None).as_dict()


def _planned(view: Any) -> dict[str, Any]:
    from epochcast.schedule.policies.policy_table import DEFAULT, Switches
    from epochcast.schedule.projection import ProjectionOptions

    answer: dict[str, Any] = view.timetable(ProjectionOptions(DEFAULT, Switches(), None, DRAWS, 0), None).as_dict()
    return answer


def _read(document: object, at: datetime) -> Any:
    from epochcast.predict.forecast.session import Session
    from epochcast.queues import read_queue

    plain = {key: value for key, value in _checked(document).items() if key != "policies"}
    return read_queue(plain, at, session=Session(allow_code=False))


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
