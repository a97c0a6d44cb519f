"""A file of settings, recognised by what is in it.

JSON, YAML, TOML and command lines are read within bounds and never run. A script is read by its syntax tree, a
`.keras` archive by its config.
"""

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from epochcast.base.notes import Importance, Note
from epochcast.describe.capture.config.accelerate_config import is_accelerate, read_accelerate
from epochcast.describe.capture.config.command_lines import CommandLine, command_lines, environment
from epochcast.describe.capture.config.deepspeed_config import KIND as DEEPSPEED_KIND
from epochcast.describe.capture.config.deepspeed_config import is_deepspeed, read_deepspeed
from epochcast.describe.capture.config.key_table import LAUNCHED, MODEL, PROGRAM, SUBCOMMAND
from epochcast.describe.capture.config.lightning_settings import is_lightning, read_lightning
from epochcast.describe.capture.config.offloads import OPTIMIZER, PARAMETERS
from epochcast.describe.capture.config.setting import ConfigSetting, ConfigSettings, InvalidSetting, Reader
from epochcast.describe.capture.config.settings_documents import document_of, read_text
from epochcast.describe.capture.config.trainers.trainer_table import TRAINERS
from epochcast.describe.capture.config.training_arguments import (
    DEEPSPEED,
    is_training_arguments,
    read_training_arguments,
)
from epochcast.describe.capture.model_reference import NNUNET, ModelReference
from epochcast.errors import BadInput

Kind = tuple[Callable[[Mapping[str, Any]], bool], Callable[[str, Mapping[str, Any]], ConfigSettings]]
# In this order: Accelerate's file may hold DeepSpeed's words, and TrainingArguments those of both.
_KINDS: tuple[Kind, ...] = (
    *((trainer.recognises, trainer.read) for trainer in TRAINERS),
    (is_lightning, read_lightning),
    (is_accelerate, read_accelerate),
    (is_training_arguments, read_training_arguments),
    (is_deepspeed, read_deepspeed),
)
KNOWN = (
    *(trainer.name for trainer in TRAINERS),
    *("TrainingArguments (TRL)", "Accelerate", "DeepSpeed", "LightningCLI", "a training script", "a .keras model"),
)
"""What can be read, for messages."""
_SHELLS = (".sh", ".bash", ".zsh", ".slurm", ".sbatch", ".txt", ".args", ".cmd", ".bat", "")
_SEPARATOR = "\0"
"""Between the words of a command line, as Linux has it."""
_NAMED = ("config", "config_file", "cfg", "config_path")
"""Options of trainers that name a file of settings."""
_DATA = "dataset_config"
"""One that names a file of data sets."""


def read_settings(path: str | Path) -> tuple[ConfigSettings, ...]:
    """What a file says of a job, and what a DeepSpeed config that it names says."""
    file = Path(path)
    if file.is_dir():
        raise BadInput(f"{str(file)!r} is a folder, not a file of settings")
    if not file.is_file():
        raise BadInput(f"there is no file {str(file)!r}")
    match file.suffix.casefold():
        case ".py":
            from epochcast.describe.capture.script.script_settings import script_settings

            return script_settings(file)
        case ".keras":
            from epochcast.describe.capture.config.keras_settings import compiled_settings
            from epochcast.describe.capture.keras.archive import read_config

            return (compiled_settings(file.name, read_config(file)),)
        case ".env":
            return document_settings(file.name, environment(read_text(file)), file.parent)
        case suffix if suffix in _SHELLS:
            text = read_text(file)
            if _SEPARATOR in text:
                return _of_process(file, text)
            if text.lstrip()[:1] not in ("{", "["):
                return _of_commands(file, text)
            return document_settings(file.name, document_of(file, text), file.parent)
        case _:
            return document_settings(file.name, document_of(file, read_text(file)), file.parent)


def document_settings(name: str, document: Mapping[str, Any], folder: Path) -> tuple[ConfigSettings, ...]:
    """The same for a document that was read before; files that it names lie in `folder`."""
    document = _with_data(document, folder)
    for is_kind, read in _KINDS:
        if is_kind(document):
            return (_in_folder(read(name, document), folder), *_inner(name, document, folder))
    keys = ", ".join(list(map(str, document))[:6]) or "nothing"
    raise BadInput(f"{name}: unknown settings file: expected one of {', '.join(KNOWN)}; it has {keys}")


def _with_data(document: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """With the file of data sets that it names (kohya), where that is there."""
    named = document.get(_DATA)
    place = folder / named if isinstance(named, str) and named else None
    if place is None or not place.is_file():
        return document
    return {**document_of(place, read_text(place)), **{key: document[key] for key in document if key != _DATA}}


def _in_folder(settings: ConfigSettings, folder: Path) -> ConfigSettings:
    """With a plan of nnU-Net, which is its own model, by its path."""
    model = ModelReference.of(str(settings.value(MODEL) or ""))
    if model.prefix != NNUNET:
        return settings
    whole = ModelReference(NNUNET, str(folder / model.name))
    entries = [replace(each, value=str(whole)) if each.option == MODEL else each for each in settings.settings]
    return replace(settings, settings=tuple(entries))


def _of_process(file: Path, text: str) -> tuple[ConfigSettings, ...]:
    """The command line of a running process (/proc/4242/cmdline); files that it names lie in its own folder."""
    folder = file.parent / "cwd"
    if not os.access(folder, os.X_OK):  # another user's
        folder = Path()
    return _of_commands(folder / f"process {file.parent.name}", shlex.join(text.rstrip(_SEPARATOR).split(_SEPARATOR)))


def _of_commands(file: Path, text: str) -> tuple[ConfigSettings, ...]:
    """The command of a script that starts a training, with the file of settings that it names."""
    for line in command_lines(text):
        of_line = _of_command(file, line)
        if of_line:
            return of_line
    raise BadInput(
        f"{file.name} has no command that starts a training known here ({', '.join(KNOWN)}), such as "
        "torchrun pretrain_gpt.py --num-layers 32"
    )


def _of_command(file: Path, line: CommandLine) -> tuple[ConfigSettings, ...]:
    document = dict(line.document)
    named = [*line.files, *(document[name] for name in _NAMED if isinstance(document.get(name), str))]
    places = [place for each in named for place in (file.parent / each, Path(each)) if place.is_file()]
    trainer = next((each for each in TRAINERS if line.program in each.programs), None)
    if places:
        document = {**document_of(places[0], read_text(places[0])), **document}
    document = dict(_with_data(document, file.parent))
    document = {name: value for name, value in document.items() if name not in _NAMED or value not in named}
    launched = {name: value for name, value in zip(LAUNCHED, (line.gpus, line.nodes), strict=True) if value}
    if trainer is not None and document:
        asked = {PROGRAM: line.program, SUBCOMMAND: line.subcommand, **launched, **document}
        settings = trainer.read(file.name, asked)
        unread = [name for name in line.unread if trainer.matters(name)]
        notes = (
            [Note(f"{', '.join(unread)}: known only when the script runs", Importance.NOT_AS_ASKED)] if unread else []
        )
        settings = replace(settings, notes=(*settings.notes, *notes))
        return (settings, *_inner(file.name, document, file.parent))
    if not document or not any(is_kind(document) for is_kind, _ in _KINDS):
        return ()
    first, *others = document_settings(file.name, document, file.parent)
    said = [ConfigSetting(LAUNCHED[name], value, "launcher") for name, value in launched.items()]
    said = [setting for setting in said if first.value(setting.option) is None]
    return (replace(first, settings=(*first.settings, *said)), *others)


def _inner(name: str, document: Mapping[str, Any], folder: Path) -> Iterator[ConfigSettings]:
    """The DeepSpeed config inside a file, or the file that it names."""
    of_accelerate = document.get("deepspeed_config")
    inner = document.get(DEEPSPEED)
    if isinstance(of_accelerate, Mapping):
        inner = of_accelerate.get("deepspeed_config_file")
    if isinstance(inner, Mapping):
        yield read_deepspeed(f"{name}, {DEEPSPEED}", inner)
    elif isinstance(inner, str) and inner:
        yield from named_deepspeed(name, inner, folder)


def named_deepspeed(name: str, inner: str, folder: Path) -> Iterator[ConfigSettings]:
    """The config that a file names by its path, beside the file or from here; of one that is not there (ms-swift's
    zero2, axolotl's deepspeed_configs/zero3_bf16.json) what its name says.
    """
    places = [place for place in (folder / inner, Path(inner)) if place.is_file()]
    if places:
        yield read_deepspeed(places[0].name, document_of(places[0], read_text(places[0])))
        return
    stage = _STAGE.search(Path(inner).stem.casefold())
    if stage is None:
        raise InvalidSetting(name, f"there is no DeepSpeed config {inner!r}")
    reader = Reader(Path(inner).name, {})
    reader.set("strategy", f"zero{stage[1]}" if stage[1] != "0" else "ddp", "its name")
    if "offload" in inner.casefold():
        reader.set("offload", PARAMETERS if stage[1] == "3" else OPTIMIZER, "its name")
    if Path(inner).suffix:
        reader.notes.append(f"{inner} is not there; its name says stage {stage[1]}, give the file for the rest")
    yield reader.settings(DEEPSPEED_KIND, uses_deepspeed=True)


_STAGE = re.compile(r"z(?:ero)?[_-]?(?:stage)?[_-]?([0-3])")
