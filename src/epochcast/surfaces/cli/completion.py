"""What a shell offers while a command is typed: names of models, devices and everything else that is known by name."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

Completer = Callable[[str], list[str]]

_MODEL_ENDINGS = (".py", ".onnx", ".keras", ".toml", ".json")
_CONFIG_ENDINGS = (".json", ".yaml", ".yml", ".py", ".keras")


def _beginning(names: Iterable[str], typed: str) -> list[str]:
    """Names that begin so, whatever their case. What was typed stays as it is: a shell drops what begins otherwise, and
    names are found in any case.
    """
    return [typed + name[len(typed) :] for name in names if name.casefold().startswith(typed.casefold())]


def _files(typed: str, endings: tuple[str, ...]) -> list[str]:
    """Files with these endings, and folders, whose path begins so."""
    path = Path(typed)
    folder, start = (path, "") if typed.endswith("/") else (path.parent, path.name)
    try:
        entries = sorted(folder.iterdir()) if typed else sorted(Path().iterdir())
    except OSError:
        return []
    return [
        f"{entry}/" if entry.is_dir() else str(entry)
        for entry in entries
        if entry.name.startswith(start)
        and not entry.name.startswith(".")
        and (entry.is_dir() or entry.suffix.casefold() in endings)
    ]


def models(incomplete: str) -> list[str]:
    """Built-in models, known ids of the Hugging Face Hub, and files that may hold a model."""
    from epochcast.describe.capture.hub import HUB
    from epochcast.describe.capture.zoo import ZOO

    hub = _beginning(HUB, incomplete) if incomplete else []  # too many to show unasked
    return [*_beginning(sorted(ZOO), incomplete), *hub, *_files(incomplete, _MODEL_ENDINGS)]


def configs(incomplete: str) -> list[str]:
    """Files that may hold settings."""
    return _files(incomplete, _CONFIG_ENDINGS)


def jobs(incomplete: str) -> list[str]:
    """Jobs of the nearest job file."""
    from epochcast.errors import EpochcastError
    from epochcast.predict.forecast.job_file import find_job_file, read_jobs

    try:
        return [job.name for job in read_jobs(find_job_file()) if job.name.startswith(incomplete)]
    except (EpochcastError, OSError):
        return []


def _devices(incomplete: str) -> list[str]:
    from epochcast.hardware.catalogue import devices

    return [*_beginning((device.name for device in devices()), incomplete), *_files(incomplete, (".toml",))]


def _datasets(incomplete: str) -> list[str]:
    from epochcast.describe.datasets import datasets

    return _beginning((dataset.name for dataset in datasets()), incomplete)


def _links(incomplete: str) -> list[str]:
    from epochcast.hardware.catalogue import links

    return _beginning((link.name for link in links()), incomplete)


def _topologies(incomplete: str) -> list[str]:
    from epochcast.hardware.topology import topologies

    return _beginning((machine.name for machine in topologies()), incomplete)


def _precisions(incomplete: str) -> list[str]:
    from epochcast.describe.graph.precision import ALIASES, PRECISIONS

    return _beginning(sorted({*PRECISIONS, *ALIASES}), incomplete)


def _optimizers(incomplete: str) -> list[str]:
    from epochcast.describe.graph.optimizer import OPTIMIZERS

    return _beginning(sorted(OPTIMIZERS), incomplete)


def _strategies(incomplete: str) -> list[str]:
    from epochcast.predict.forecast.strategies.strategy_table import STRATEGIES

    return _beginning(sorted(STRATEGIES), incomplete)


def _compilers(incomplete: str) -> list[str]:
    from epochcast.describe.graph.compilers import COMPILERS

    return _beginning(sorted({"none", *COMPILERS}), incomplete)


def _frameworks(incomplete: str) -> list[str]:
    from epochcast.predict.forecast.job import FRAMEWORKS

    return _beginning(FRAMEWORKS, incomplete)


COMPLETERS: Mapping[str, Completer] = {
    "device": _devices,
    "dataset": _datasets,
    "link": _links,
    "topology": _topologies,
    "precision": _precisions,
    "optimizer": _optimizers,
    "strategy": _strategies,
    "compile": _compilers,
    "framework": _frameworks,
}
"""By the name of an option."""
