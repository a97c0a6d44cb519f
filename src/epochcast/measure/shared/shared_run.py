"""One measured run as it is shared: the job, where it ran, and its step; nothing that says who or where.

A file holds the options of the job that differ from their defaults, the device by the name of its data sheet (a
processor as `cpu`, with its model and cores), the step with its interval, and the month. Names of runs, hosts and
users, paths, commands and settings files are never in it. A model must be one that others can build: a name, an id of
the Hub, or sizes, and no code or file.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from epochcast.base.documents import parse_json, read_text
from epochcast.base.options import check_names
from epochcast.base.record import Record
from epochcast.describe.capture.model_reference import FILE_ENDINGS, ModelReference
from epochcast.errors import BadInput, EpochcastError
from epochcast.hardware.catalogue import find_device, is_sheet
from epochcast.hardware.device import Device
from epochcast.hardware.host_device import HOST_NAMES, detect_host
from epochcast.interval import Interval
from epochcast.measure.tables.run_network import family_of
from epochcast.measure.tables.run_table import MeasuredRun
from epochcast.predict.forecast.job import JOB_OPTIONS, Job
from epochcast.predict.forecast.placement import Placement, placed

TRACK, CHECK, BENCH = "track", "check", "bench"
ORIGINS = (TRACK, CHECK, BENCH)
CPU = "cpu"
SHARED = "shared"
"""The source of such rows in tables."""
MOST_FILE_BYTES = 16 << 10
MOST_STEP_SECONDS = 1e6
_NOT_SHARED = ("reference", "fingerprint")
_OPTIONS = {option.name: option for option in JOB_OPTIONS if option.name not in _NOT_SHARED}
_MONTH = re.compile(r"20\d\d-(0[1-9]|1[0-2])")
_PLAIN = re.compile(r"[\w .,:;=+*%()'-]{0,200}")
_MODEL = re.compile(r"[\w ./:,=+*()'\[\]{}-]{1,500}")


@dataclass(frozen=True, slots=True)
class SharedMachine(Record):
    """The processor beside or instead of a GPU; None where it is not known."""

    cpu: str | None = None
    cores: int | None = None
    threads: int | None = None


@dataclass(frozen=True)
class SharedRun(Record):
    """A measured run. `origin` is the command it comes from, `seen` how the step was observed there.

    `job` has the options of the job that differ from their defaults, `assumed` the names of those that nobody said.
    `gpus` are all, in `nodes` machines. `step_seconds` is a step of the optimizer with its interval, over `steps`
    observed ones; of the time, `data_fraction` waited for data and `pause_fraction` was no step. `software` are
    versions of libraries, `contributor` is who wants to be named.
    """

    json_version: ClassVar[int | None] = 1

    origin: str
    seen: str
    job: Mapping[str, Any]
    device: str
    step_seconds: Interval
    measured_in: str
    epochcast: str
    gpus: int = 1
    nodes: int = 1
    strategy: str | None = None
    link: str | None = None
    steps: float | None = None
    data_fraction: float | None = None
    pause_fraction: float | None = None
    peak_bytes: int | None = None
    assumed: tuple[str, ...] = ()
    software: Mapping[str, str] = field(default_factory=dict)
    machine: SharedMachine = SharedMachine()
    contributor: str | None = None

    def __post_init__(self) -> None:
        self._check_figures()
        check_names(self.job, _OPTIONS)
        check_public_model(self.job.get("model"))
        for text in _texts([{**self.job, "model": ""}, self.software, self.machine.cpu, self.contributor, self.seen]):
            if not _PLAIN.fullmatch(text):
                raise BadInput(f"{text!r} is not shared: it may name a file, a host or a person")
        self.training_job()
        if self.device != CPU and is_sheet(self.device):
            raise BadInput(f"{self.device!r} is a data sheet of yours; share runs on devices of epochcast devices")
        if self.device == CPU and not self.machine.cpu:
            raise BadInput("a run on a processor says which: machine.cpu is missing")

    def _check_figures(self) -> None:
        if self.origin not in ORIGINS:
            raise BadInput(f"origin must be one of {', '.join(ORIGINS)}, got {self.origin!r}")
        if not _MONTH.fullmatch(self.measured_in):
            raise BadInput(f"measured_in must be a month like 2026-11, got {self.measured_in!r}")
        if not 0 < self.step_seconds.low <= self.step_seconds.high < MOST_STEP_SECONDS:
            raise BadInput(f"step_seconds must be above 0 and below {MOST_STEP_SECONDS:g}")
        if not 1 <= self.nodes <= self.gpus:
            raise BadInput(f"a run has at least one GPU on each node, got {self.gpus} GPUs on {self.nodes} nodes")
        for name in ("data_fraction", "pause_fraction"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise BadInput(f"{name} must be between 0 and 1, got {value}")

    def training_job(self) -> Job:
        """The job that ran."""
        return Job(**{name: _OPTIONS[name].read(value) for name, value in self.job.items()})

    def known_device(self) -> Device:
        """The device; a processor is known where it is this machine's own."""
        if self.device != CPU:
            return find_device(self.device)
        host = detect_host()
        if host.name != self.machine.cpu:
            raise BadInput(f"it ran on {self.machine.cpu}, this is {host.name}")
        return host

    def placement(self) -> Placement:
        """Where it ran."""
        return placed(self.known_device(), self.gpus, self.nodes, self.strategy, link=self.link)

    def measured(self, row_index: int = 0) -> MeasuredRun:
        """As a row of a table of runs."""
        job = self.training_job()
        model = str(job.model)
        return MeasuredRun(
            row_index=row_index,
            source=SHARED,
            model=model,
            reference=model,
            input_shape=job.input_shape,
            device=self.known_device(),
            job=job,
            gpus=self.gpus,
            nodes=self.nodes,
            interconnect=None,
            strategy=self.strategy,
            step_seconds=self.step_seconds.mid,
            family=family_of(model),
            system="",
            framework=job.framework,
        )

    def text(self) -> str:
        """The content of the file."""
        return f"{json.dumps(self.as_dict(), indent=2, ensure_ascii=False)}\n"

    @property
    def file_name(self) -> str:
        """a100-sxm4-40gb-resnet50-1a2b3c4d.json"""
        device = (self.machine.cpu or CPU) if self.device == CPU else self.device
        words = re.sub(r"[^a-z0-9]+", "-", f"{device} {self.job['model']}".casefold()).strip("-")[:60].strip("-")
        return f"{words}-{hashlib.sha256(self.text().encode()).hexdigest()[:8]}.json"


def check_public_model(model: object) -> None:
    """Refuse a model that others cannot build, or whose name says where it is kept."""
    if not isinstance(model, str) or not _MODEL.fullmatch(model):
        raise BadInput(f"a shared run names a model as text, got {model!r}")
    reference = ModelReference.of(model)
    is_path = model.startswith(("/", ".", "~")) or ".." in model or "\\" in model
    if reference.is_code or is_path or reference.file.lower().endswith((*FILE_ENDINGS, ".ipynb", ".yaml", ".yml")):
        raise BadInput(
            f"{model!r} is a file or code of yours, which others cannot build: share a run of a model with a public "
            "name, such as resnet50, meta-llama/Llama-3.1-8B or decoder:…"
        )


def shared_options(job: Job) -> dict[str, Any]:
    """The options of a job that differ from their defaults."""
    options = job.as_dict()
    return {
        name: options[name]
        for name, option in _OPTIONS.items()
        if name in options and options[name] != _plain(option.default)
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _texts(value: Any) -> list[str]:
    """All texts in a JSON value."""
    match value:
        case str():
            return [value]
        case Mapping():
            return [text for key, inner in value.items() for text in (key, *_texts(inner))]
        case Sequence():
            return [text for inner in value for text in _texts(inner)]
    return []


def read_shared(path: Path) -> SharedRun:
    """The run in a file, checked."""
    try:
        document = parse_json(read_text(path, MOST_FILE_BYTES), path.name)
        run = SharedRun.from_dict(document)
        if run.device not in HOST_NAMES:
            find_device(run.device)
    except EpochcastError as error:
        raise BadInput(f"{path.name}: {error}") from None
    return run


def shared_in(folder: Path) -> dict[str, SharedRun]:
    """The runs of a folder, by the names of their files."""
    if not folder.is_dir():
        raise BadInput(f"no folder {str(folder)!r}")
    files = sorted(path for path in folder.glob("*.json") if path.name != SCHEMA_FILE)
    if not files:
        raise BadInput(f"{str(folder)!r} has no shared run (*.json); write one with: epochcast share")
    return {path.name: read_shared(path) for path in files}


SCHEMA_FILE = "schema.json"
