"""Model files that were sent to the server: kept by the digest of their content, in a folder of each project.

    FOLDER/PROJECT/DIGEST/NAME.onnx

A file is a model only when a worker has read it (`summary_of`); until then it is beside its place, under another name.
Uploads that nobody has asked about for long are removed when another comes; a project has a quota. Only whoever runs
the server may read the folders.
"""

import hashlib
import os
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from epochcast.base.documents import parse_json, read_text
from epochcast.errors import BadInput

ENDINGS = (".onnx", ".keras", ".json", ".toml")
TABLES = (".csv", ".parquet", ".jsonl")
# A file that waits to be read for longer is of a server that was killed.
MOST_WAITING_SECONDS = 3_600.0
_PRIVATE = 0o700
_NAME = re.compile(r"[\w][\w.-]{0,99}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def checked_file_name(name: str, endings: tuple[str, ...] = ENDINGS) -> str:
    """The name of an uploaded file, without any folder; only endings that are read."""
    plain = name.replace("\\", "/").rpartition("/")[2]
    if not _NAME.fullmatch(plain) or Path(plain).suffix.lower() not in endings:
        kind = "table" if endings == TABLES else "model file"
        raise BadInput(
            f"{plain[:100]!r} is not the name of a {kind}: letters, digits, dots and dashes, "
            f"with one of the endings {', '.join(endings)}"
        )
    return plain


def project_folder(folder: Path, project: str) -> Path:
    """The folder of a project's uploads; projects that cannot be told apart as folders are by their digest."""
    return folder / hashlib.sha256(project.encode()).hexdigest()[:16]


def stored_upload(folder: Path, project: str, name: str, content: bytes) -> tuple[str, Path]:
    """Write an uploaded file beside its place; gives its digest and where it is."""
    digest = hashlib.sha256(content).hexdigest()
    waiting = project_folder(folder, project) / f".{digest}.{os.getpid()}.{os.urandom(4).hex()}"
    waiting.mkdir(parents=True, mode=_PRIVATE)
    file = waiting / name
    try:
        file.write_bytes(content)
    except OSError:
        refuse(file)
        raise
    return digest, file


def make_room(folder: Path, project: str, size_bytes: int, most_bytes: int, kept_seconds: float) -> bool:
    """Remove old uploads of a project; whether another of so many bytes is then within its quota."""
    now, kept_bytes = time.time(), 0
    home = project_folder(folder, project)
    for place in list(home.iterdir()) if home.is_dir() else ():
        try:
            age_seconds = now - place.stat().st_mtime
            file_bytes = sum(file.stat().st_size for file in place.iterdir())
        except OSError:  # accepted or removed meanwhile
            continue
        if age_seconds > (kept_seconds if _DIGEST.fullmatch(place.name) else MOST_WAITING_SECONDS):
            shutil.rmtree(place, ignore_errors=True)
        else:
            kept_bytes += file_bytes
    return kept_bytes + size_bytes <= most_bytes


def accept(file: Path, digest: str) -> None:
    """It was read: move it to its place; one that is there already stays."""
    place = file.parent.parent / digest
    try:
        file.parent.rename(place)
    except OSError:
        shutil.rmtree(file.parent, ignore_errors=True)


def refuse(file: Path) -> None:
    """It was not: leave nothing behind."""
    shutil.rmtree(file.parent, ignore_errors=True)


def stored_reference(folder: Path, project: str, digest: str) -> str:
    """The reference of an uploaded model."""
    if not _DIGEST.fullmatch(digest):
        raise BadInput("an upload is named by the 64 letters and digits that its upload was answered with")
    place = project_folder(folder, project) / digest
    files = sorted(place.iterdir()) if place.is_dir() else []
    if not files:
        raise BadInput(f"no upload {digest[:12]}… here; send the file again")
    with suppress(OSError):
        os.utime(place)  # it is asked about: its age begins anew
    return reference_of(files[0])


def reference_of(file: Path) -> str:
    """How a model file is named: a configuration of Hugging Face is a JSON file, too."""
    if file.suffix.lower() != ".json":
        return str(file)
    document = parse_json(read_text(file), file.name)
    is_hugging_face = isinstance(document, dict) and "class_name" not in document and "model_type" in document
    return f"hf:{file}" if is_hugging_face else str(file)


def summary_of(file: Path) -> dict[str, Any]:
    """What the model of a file is made of, in short; raises where it is none."""
    from epochcast import api

    inspected = api.inspect(reference_of(file)).as_dict()
    names = ("input_shape", "parameters", "trainable_parameters", "forward_flops_per_sample", "opaque_ops")
    return {"name": file.name, **{name: inspected[name] for name in names}}
