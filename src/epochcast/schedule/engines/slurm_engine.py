"""Jobs on a Slurm cluster: sbatch, squeue, scancel and sinfo. A node type is a feature of Slurm's nodes.

A start is a batch job with its key as comment, which Slurm does not start again by itself (--no-requeue): what goes on
where is decided here. Its script makes KEY.started once and leaves KEY.exit, in a folder that the nodes share with this
machine; so a job that Slurm has forgotten since (MinJobAge) is still accounted for. `options` are added to every
sbatch, for the partition and the account of a site.
"""

import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from epochcast.schedule.engines.executor import (
    OVER,
    PENDING,
    RUNNING,
    STARTED_TWICE,
    EngineAway,
    EngineNode,
    EngineRefuses,
    StartOrder,
    StartState,
)

# Long enough for a controller under load; Slurm's own messages time out after ten seconds.
ANSWER_SECONDS = 60.0
# States of jobs, slurm.schedmd.com/job_state_codes.html.
_WAITS = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
_RUNS = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
_LOST = {"NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED", "LAUNCH_FAILED"}
# States of nodes that take jobs, or will when they have been started.
_UP = {"idle", "mixed", "allocated", "completing", "planned", "reserved", "powering_up", "powered_down"}
_AWAY = re.compile(r"Unable to contact slurm controller|Connection refused|timed out|Socket|Communication", re.I)


@dataclass(frozen=True, slots=True)
class SlurmEngine:
    """A Slurm cluster, as the commands of this machine see it."""

    options: tuple[str, ...] = ()
    name: str = "slurm"

    def start(self, order: StartOrder) -> str:
        """sbatch; gives the number of the job."""
        order.make_folders()
        words = [
            "sbatch",
            "--parsable",
            f"--job-name={order.job}",
            f"--comment={order.key}",
            f"--chdir={order.folder}",
            f"--output={_plain(str(order.log))}",
            "--open-mode=append",
            "--no-requeue",
            "--nodes=1",
            "--ntasks=1",
            f"--gres=gpu:{order.choice.gpus}",
            f"--constraint={order.node_type}",
            *([] if order.node is None else [f"--nodelist={order.node}"]),
            *self.options,
        ]
        return _run(words, script(order)).strip().partition(";")[0]

    def look(self, orders: Sequence[StartOrder]) -> Mapping[str, StartState]:
        """From squeue, and from what jobs left behind where Slurm has forgotten them."""
        rows: dict[str, list[tuple[str, str]]] = {}
        for line in _run(["squeue", "--noheader", "--states=all", "--format=%i|%T|%k"]).splitlines():
            number, state, comment = line.strip().split("|", 2)
            rows.setdefault(comment.strip(), []).append((number, state))
        return {order.key: seen for order in orders if (seen := self._seen(order, rows.get(order.key, []))) is not None}

    def _seen(self, order: StartOrder, rows: Sequence[tuple[str, str]]) -> StartState | None:
        started = order.started()
        owner = None if started is None else str(started.get("pid", ""))
        for number, state in rows:
            if len(rows) > 1 and owner not in (None, number):
                self._cancel_extra(number, state)
                continue
            if state in _WAITS:
                return StartState(number, PENDING)
            if state in _RUNS:
                return StartState(number, RUNNING)
            code = order.exit_code()
            # A script that began and left no exit code was killed with its node, whatever Slurm makes of its end.
            is_cut = code is None and state == "FAILED" and started is not None
            if code is None and not is_cut and state in ("FAILED", "COMPLETED", "TIMEOUT", "OUT_OF_MEMORY"):
                code = 1 if state != "COMPLETED" else 0
            return StartState(number, OVER, code, is_cut or state in _LOST, f"Slurm says {state}")
        if started is None:
            return None
        code = order.exit_code()
        reason = None if code is not None else "Slurm does not know it any more and it left no exit code"
        return StartState(owner or "", OVER, code, code is None, reason)

    def _cancel_extra(self, number: str, state: str) -> None:
        """A second job with the same key: it was asked for twice around a crash."""
        if state in _WAITS:
            _run(["scancel", number])

    def stop(self, order: StartOrder) -> None:
        """SIGTERM to all processes of the job; one that waits is taken out of Slurm's queue."""
        if order.engine_id is not None:
            _run(["scancel", "--state=PENDING", order.engine_id], fails=False)
            _run(["scancel", "--signal=TERM", "--full", "--state=RUNNING", order.engine_id], fails=False)

    def kill(self, order: StartOrder) -> None:
        """SIGKILL, then Slurm cancels what is left."""
        if order.engine_id is not None:
            _run(["scancel", "--signal=KILL", "--full", order.engine_id], fails=False)
            _run(["scancel", order.engine_id], fails=False)

    def fetch_log(self, order: StartOrder) -> None:
        """The job writes it by itself, into the shared folder."""

    def nodes(self, types: Iterable[str]) -> Sequence[EngineNode] | None:
        """The nodes that have a type among their features."""
        wanted = set(types)
        nodes = {}
        for line in _run(["sinfo", "--noheader", "--Node", "--format=%N|%f|%T"]).splitlines():
            name, features, state = (part.strip() for part in line.split("|", 2))
            kind = next((feature for feature in features.split(",") if feature in wanted), None)
            if kind is not None:
                nodes[name] = EngineNode(name, kind, state.rstrip("~#!%$@+^-") in _UP)
        return tuple(nodes.values())

    def close(self) -> None:
        """Nothing is held."""


def script(order: StartOrder) -> str:
    """The batch script: begins once per key, and keeps the exit code though a signal may reach the shell, too."""
    started, exit_file = shlex.quote(str(order.started_file)), shlex.quote(str(order.exit_file))
    mine = shlex.quote(f"{order.started_file}.") + "$SLURM_JOB_ID"
    return "\n".join(
        [
            "#!/bin/sh",
            *(f"export {name}={shlex.quote(value)}" for name, value in {"PYTHONUNBUFFERED": "1", **order.env}.items()),
            f"""printf '{{"pid": %s}}' "$SLURM_JOB_ID" > {mine}""",
            f"ln {mine} {started} || {{ rm -f {mine}; exit {STARTED_TWICE}; }}",
            f"rm -f {mine}",
            "trap : TERM INT HUP",
            shlex.join(order.command),
            "code=$?",
            f"echo $code > {exit_file}.new && mv {exit_file}.new {exit_file}",
            "exit $code",
            "",
        ]
    )


def _plain(path: str) -> str:
    """A file name in which Slurm replaces nothing."""
    return path.replace("\\", "\\\\").replace("%", "%%")


def _run(words: Sequence[str], text: str = "", fails: bool = True) -> str:
    try:
        ran = subprocess.run(
            list(words), input=text, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False
        )
    except FileNotFoundError:
        raise EngineRefuses(f"Slurm's {words[0]} is not on this machine") from None
    except subprocess.TimeoutExpired:
        raise EngineAway(f"Slurm's {words[0]} did not answer within {ANSWER_SECONDS:.0f} seconds") from None
    if ran.returncode and fails:
        line = next((line for line in ran.stderr.splitlines() if line.strip()), f"exit code {ran.returncode}")
        raise (EngineAway if _AWAY.search(ran.stderr) else EngineRefuses)(f"Slurm's {words[0]}: {line.strip()}")
    return ran.stdout
