"""A batch script of Slurm (sbatch's options, slurm.schedmd.com/sbatch.html).

A plain command is a task for each GPU, as Slurm's own environment tells it its rank. A launcher (`launcher`) starts the
processes of its node itself: it is one task per node, and over several nodes they meet at the first of them.
"""

import shlex
from math import ceil

from epochcast.decide.handover.launchers import Launch, Nodes, launch_of
from epochcast.decide.handover.resource_request import Request, percentile_note

MEBIBYTE = 2**20


_NODES = Nodes(head="$head_node", rank="$SLURM_NODEID", job="$SLURM_JOB_ID", hostfile="$PWD/hostfile-$SLURM_JOB_ID")
# Programs that start tasks by themselves; srun before them would start each of them several times.
_TASK_STARTERS = ("srun", "mpirun", "mpiexec")


def slurm(request: Request) -> str:
    """#SBATCH lines, and the command where it is known."""
    launch = None if request.command is None else launch_of(request.command)
    gpus = f"{gres_type(request.device.name)}:{request.gpus_per_node}"
    options = {
        "job-name": request.name,
        "time": slurm_time(request.seconds),
        "nodes": str(request.nodes),
        "ntasks-per-node": str(request.gpus_per_node if launch is None else 1),
        **({"gres": f"gpu:{gpus}"} if launch is None else {"gpus-per-node": gpus}),
        "cpus-per-task": str(request.cpus_per_gpu if launch is None else request.cpus),
    }
    if request.memory_bytes is not None:
        options["mem"] = f"{ceil(request.memory_bytes / MEBIBYTE)}M"
    gpu_option = "gres" if launch is None else "gpus-per-node"
    notes = (percentile_note(request), *request.notes, f"the type in --{gpu_option} is your site's: see `sinfo -o %G`")
    lines = [
        "#!/bin/bash",
        *(f"# {note}" for note in notes),
        *(f"#SBATCH --{name}={value}" for name, value in options.items()),
    ]
    if launch is not None:
        lines += ["", *_launched(request, launch)]
    elif request.command is not None:
        words = request.command.split(maxsplit=1)
        starts_tasks = bool(words) and words[0] in _TASK_STARTERS
        lines += ["", request.command if starts_tasks else f"srun {request.command}"]
    return "\n".join([*lines, ""])


def _launched(request: Request, launch: Launch) -> list[str]:
    """The lines that start a launcher once on every node."""
    command = launch.over(request.nodes, request.gpus_per_node, _NODES)
    # Since Slurm 22.05 srun takes --cpus-per-task from this variable and no longer from sbatch.
    lines = ["export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK"]
    if request.nodes > 1:
        # The address by which Slurm reaches the node: its name need not resolve on the others.
        lines.append('head_name=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)')
        lines.append('head_node=$(scontrol show node "$head_name" | sed -n "s/.*NodeAddr=\\([^ ]*\\).*/\\1/p")')
        lines.append('export head_node="${head_node:-$head_name}"')
    if request.nodes > 1 and launch.launcher.needs_hostfile:
        slots = f"sed 's/$/ slots={request.gpus_per_node}/'"
        lines.append(f'scontrol show hostnames "$SLURM_JOB_NODELIST" | {slots} > "{_NODES.hostfile}"')
    # The rank of a node is known only on that node: a shell there puts it in.
    is_in_shell = launch.is_compound or request.nodes > 1
    return [*lines, f"srun bash -c {shlex.quote(command)}" if is_in_shell else f"srun {command}"]


def slurm_time(seconds: int) -> str:
    """D-HH:MM:SS, in whole minutes: Slurm rounds up to them anyway."""
    minutes = max(1, ceil(seconds / 60))
    days, rest = divmod(minutes, 24 * 60)
    return f"{days}-{rest // 60:02d}:{rest % 60:02d}:00"


def gres_type(device: str) -> str:
    """a100 of A100-SXM4-40GB, rtx3090 of RTX 3090: what most sites call it."""
    return device.partition("-")[0].replace(" ", "").casefold()
