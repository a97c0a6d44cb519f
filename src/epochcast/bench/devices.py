"""The devices that can be measured here, by torch's names."""

from epochcast.errors import BadInput, MissingExtra


def find_torch_device(name: str | None = None, threads: int | None = None) -> str:
    """A device that torch has: the first GPU where none is named, else the processor; with so many threads of it."""
    try:
        import torch
    except ModuleNotFoundError:
        raise MissingExtra("torch") from None
    if threads is not None:
        if threads < 1:
            raise BadInput(f"--threads must be at least 1, got {threads}")
        torch.set_num_threads(threads)
    cards = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    present = [*cards, *(["mps"] if torch.backends.mps.is_available() else []), "cpu"]
    if name is None:
        return present[0]
    wanted = "cuda:0" if name == "cuda" else name
    if wanted not in present:
        raise BadInput(f"no device {name!r} to measure here; torch has: {', '.join(present)}")
    return wanted
