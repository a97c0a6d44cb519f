"""Jobs written down: `epochcast.toml`, found upward from the working directory.

    [defaults]                     what every job has unless it says otherwise
    device = "A100"
    precision = "amp"

    [[job]]
    name = "imagenet"
    model = "resnet50"
    batch = 128
    dataset = "imagenet-1k"
    epochs = 90
    gpus = 8

The keys are the options of `Job` and of `Where`. Values may be written as on the command line ("8ms", "3x224x224"). A
model or a device that is a file is looked for beside the job file. A key that is none is refused with file and line.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochcast.base.atomic_files import write_text
from epochcast.base.documents import parse_toml, read_text
from epochcast.base.options import Option
from epochcast.describe.capture.model_reference import ModelReference
from epochcast.errors import BadInput, EpochcastError, UnknownName, UnknownOption
from epochcast.hardware.catalogue import is_sheet
from epochcast.predict.forecast.job import JOB_OPTIONS, Job
from epochcast.predict.forecast.job_alternatives import without_replaced
from epochcast.predict.forecast.where import PLACE_OPTIONS, Where

FILE = "epochcast.toml"
MOST_BYTES = 1_000_000
"""A larger file is no list of jobs."""

OPTIONS: Mapping[str, Option] = {
    option.name: option for option in (*JOB_OPTIONS, *PLACE_OPTIONS) if option.name != "reference"
}
_PLACE_NAMES = frozenset(option.name for option in PLACE_OPTIONS)
_FILE = re.compile(r"(\bfile\s*=\s*)([^,]+)")
_NAME = re.compile(r"[\w.\-]+")


@dataclass(frozen=True)
class NamedJob:
    """A job of the file: what is trained, and where it runs unless a command says otherwise."""

    name: str
    job: Job
    where: Where
    given: Mapping[str, Any]
    """What the file says, defaults included, by the names of options."""


def find_job_file(start: Path | None = None) -> Path:
    """The nearest `epochcast.toml`, from a folder upward."""
    folder = (start or Path.cwd()).absolute()
    for candidate in (folder, *folder.parents):
        if (candidate / FILE).is_file():
            return candidate / FILE
    raise BadInput(f"no {FILE} in {folder} or above it; `epochcast jobs init` writes one")


def read_jobs(path: Path) -> tuple[NamedJob, ...]:
    """Every job of a file, checked.

    >>> import tempfile, epochcast as ec
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "epochcast.toml")
    ...     size = file.write_text('[[job]]\\nname = "small"\\nmodel = "resnet18"\\ndevice = "V100"\\nbatch = 32')
    ...     names = [job.name for job in ec.read_jobs(file)]
    >>> names
    ['small']
    """
    text = _text(path)
    document = parse_toml(text, path.name)
    for key in document:
        if key not in ("defaults", "job"):
            raise _at(path, text, None, key, UnknownName("table", key, ("defaults", "job")))
    defaults, tables = document.get("defaults", {}), document.get("job", [])
    if not isinstance(defaults, dict) or not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise BadInput(f"{path.name}: jobs are tables written [[job]], what they share is one table written [defaults]")
    shared = _values(path, text, -1, defaults)
    jobs: dict[str, NamedJob] = {}
    for place, table in enumerate(tables):
        job = _named_job(path, text, place, table, shared)
        if job.name in jobs:
            raise _at(path, text, place, "name", BadInput(f"two jobs are called {job.name!r}"))
        jobs[job.name] = job
    return tuple(jobs.values())


def read_job(name: str, path: Path | None = None) -> NamedJob:
    """One job of a file, by default the nearest.

    >>> import tempfile, epochcast as ec
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "epochcast.toml")
    ...     size = file.write_text('[[job]]\\nname = "small"\\nmodel = "resnet18"\\ndevice = "V100"\\nbatch = 32')
    ...     small = ec.read_job("small", file)
    >>> small.name
    'small'
    """
    path = path or find_job_file()
    jobs = {job.name: job for job in read_jobs(path)}
    if name not in jobs:
        raise UnknownName(f"job in {path.name}", name, jobs)
    return jobs[name]


def _text(path: Path) -> str:
    return read_text(path, MOST_BYTES)


def _named_job(path: Path, text: str, place: int, table: dict[str, Any], shared: Mapping[str, Any]) -> NamedJob:
    name = table.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        problem = BadInput(f"a job needs a name of letters, digits, '.', '_' and '-', got {name!r}")
        raise _at(path, text, place, "name", problem)
    own = _values(path, text, place, {key: value for key, value in table.items() if key != "name"})
    given = {**without_replaced(shared, own), **own}
    if "model" not in given:
        raise _at(path, text, place, "name", BadInput(f"job {name!r} has no model"))
    if isinstance(given["model"], str):
        given["model"] = beside(given["model"], path.parent)
    if isinstance(given.get("device"), str) and is_sheet(given["device"]):
        given["device"] = beside(given["device"], path.parent)
    if isinstance(given.get("lengths"), str):
        given["lengths"] = _FILE.sub(lambda match: match[1] + beside(match[2], path.parent), given["lengths"])
    try:
        job = Job(**{key: value for key, value in given.items() if key not in _PLACE_NAMES})
        where = Where(**{key: value for key, value in given.items() if key in _PLACE_NAMES})
    except EpochcastError as error:
        raise _at(path, text, place, "name", BadInput(f"job {name!r}: {error}")) from None
    return NamedJob(name, job, where, given)


def _values(path: Path, text: str, place: int, table: Mapping[str, Any]) -> dict[str, Any]:
    values = {}
    for key, value in table.items():
        if key not in OPTIONS:
            raise _at(path, text, place, key, UnknownOption(key, OPTIONS))
        try:
            values[key] = OPTIONS[key].read(value)
        except EpochcastError as error:
            raise _at(path, text, place, key, error) from None
    return values


def _at(path: Path, text: str, place: int | None, key: str, error: EpochcastError) -> BadInput:
    """The error with the line on which a key stands: of the n-th job, of the defaults (-1), or of the file (None)."""
    return BadInput(f"{path.name}, line {line_of(text, place, key)}: {error}")


def line_of(text: str, place: int | None, key: str) -> int:
    """The line of a key in the n-th [[job]], in [defaults] (-1), or anywhere (None); the table's where it has none."""
    jobs, inside, header = -1, place is None, 1
    names_key = re.compile(rf"""\s*(["']?){re.escape(key)}\1\s*[=.]""")
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*\[", line):
            is_job = re.match(r"\s*\[\[\s*job\s*\]\]", line) is not None
            jobs += is_job
            inside = place is None or (is_job and jobs == place) or (place == -1 and "defaults" in line)
            header = number if inside else header
            if place is None and re.match(rf"\s*\[+\s*{re.escape(key)}\b", line):
                return number
        elif inside and names_key.match(line):
            return number
    return header


def beside(model: str, folder: Path) -> str:
    """A reference to a file, from a folder: `net.py:make` of /a is /a/net.py:make where that file is there."""
    reference = ModelReference.of(model)
    file = reference.file
    if file and not Path(file).is_absolute() and (folder / file).is_file() and folder != Path.cwd():
        return reference.with_file(folder / file)
    return model


def seen_from(model: str, folder: Path) -> str:
    """The same reference as a job file in that folder writes it: relative to the folder."""
    reference = ModelReference.of(model)
    file = reference.file
    if not file or Path(file).is_absolute() or not Path(file).is_file():
        return model
    return reference.with_file(os.path.relpath(file, folder))


# ---- writing ------------------------------------------------------------------------------------


def append_job(path: Path, name: str, options: Mapping[str, Any]) -> None:
    """Write a job at the end of a file, which is made where there is none; nothing else in it changes."""
    if not _NAME.fullmatch(name):
        raise BadInput(f"a job's name has letters, digits, '.', '_' and '-', got {name!r}")
    before = ""
    if path.exists():
        if any(job.name == name for job in read_jobs(path)):
            raise BadInput(f"{path.name} has a job called {name!r} already")
        before = _text(path)
        options = _over_defaults(path, tomllib.loads(before).get("defaults", {}), options)
    job = "".join(f"{key} = {toml(value)}\n" for key, value in {"name": name, **options}.items() if value is not None)
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    after = f"{before}{gap}[[job]]\n{job}"
    tomllib.loads(after)
    write_text(path, after)


def _over_defaults(path: Path, defaults: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, and those of [defaults] that the job does not have written out as they are without a word."""
    written = dict(options)
    for key in without_replaced(defaults, options):
        if written.get(key) is None:
            plain = OPTIONS[key].default
            if plain is None:
                raise BadInput(f"[defaults] of {path.name} has {key}, which this job does not: say it for the job, too")
            written[key] = plain
    return written


def toml(value: Any) -> str:
    """A plain value as TOML writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04X}" for c in escaped) + '"'
        case list() | tuple():
            return "[" + ", ".join(map(toml, value)) + "]"
        case _:
            raise BadInput(f"a {type(value).__name__} cannot be written into a job file")


def schema() -> dict[str, Any]:
    """The JSON schema of a job file, for editors."""
    properties = {name: schema_of(option) for name, option in OPTIONS.items()}
    named = {"name": {"type": "string", "pattern": f"^{_NAME.pattern}$", "description": "What --job calls it."}}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "epochcast.toml",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "defaults": {"type": "object", "additionalProperties": False, "properties": properties},
            "job": {
                "type": "array",
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["name"],
                    "properties": {**named, **properties},
                },
            },
        },
    }


_SCHEMA_TYPES: Mapping[Any, dict[str, Any]] = {
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    object: {"type": "string"},
    tuple[str, ...]: {"type": "array", "items": {"type": "string"}},
    tuple[int, ...]: {"type": "array", "items": {"type": "integer", "minimum": 1}},
    Mapping: {"type": "object"},
}


def schema_of(option: Option) -> dict[str, Any]:
    """The JSON schema of an option."""
    plain = dict(_SCHEMA_TYPES[option.type])
    if option.least is not None:
        plain["minimum"] = option.least
    if option.most is not None:
        plain["maximum"] = option.most
    if option.above is not None:
        plain["exclusiveMinimum"] = option.above
    is_text_too = option.parse is not None and option.type is not str
    described: dict[str, Any] = {"anyOf": [plain, {"type": "string"}]} if is_text_too else plain
    if option.words:
        described = {"anyOf": [plain, {"enum": list(option.words)}]}
    described["description"] = option.help + (f" In {option.unit}." if option.unit else "")
    if option.default is not None:
        described["default"] = list(option.default) if isinstance(option.default, tuple) else option.default
    return described
