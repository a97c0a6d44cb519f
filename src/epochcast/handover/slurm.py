"""A batch script of Slurm: a task for each GPU (sbatch's options, slurm.schedmd.com/sbatch.html)."""

from math import ceil

from epochcast.handover.request import Request, percentile_note

MEBIBYTE = 2**20


def slurm(request: Request) -> str:
    """#SBATCH lines, and the command where it is known."""
    options = {
        "job-name": request.name,
        "time": slurm_time(request.seconds),
        "nodes": str(request.nodes),
        "ntasks-per-node": str(request.gpus_per_node),
        "gres": f"gpu:{gres_type(request.device.name)}:{request.gpus_per_node}",
        "cpus-per-task": str(request.cpus_per_gpu),
    }
    if request.memory_bytes is not None:
        options["mem"] = f"{ceil(request.memory_bytes / MEBIBYTE)}M"
    notes = (percentile_note(request), *request.notes, "the type in --gres is your site's: see `sinfo -o %G`")
    lines = [
        "#!/bin/bash",
        *(f"# {note}" for note in notes),
        *(f"#SBATCH --{name}={value}" for name, value in options.items()),
    ]
    if request.command is not None:
        lines += ["", f"srun {request.command}"]
    return "\n".join([*lines, ""])


def slurm_time(seconds: int) -> str:
    """D-HH:MM:SS, in whole minutes: Slurm rounds up to them anyway."""
    minutes = max(1, ceil(seconds / 60))
    days, rest = divmod(minutes, 24 * 60)
    return f"{days}-{rest // 60:02d}:{rest % 60:02d}:00"


def gres_type(device: str) -> str:
    """a100 of A100-SXM4-40GB, rtx3090 of RTX 3090: what most sites call it."""
    return device.partition("-")[0].replace(" ", "").casefold()
