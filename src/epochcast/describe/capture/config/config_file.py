"""A file of settings, recognised by what is in it.

JSON and YAML are read within bounds and never run: YAML by the safe loader, without aliases. A script is read by its
syntax tree, a `.keras` archive by its config.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from epochcast.describe.capture.config.accelerate_config import is_accelerate, read_accelerate
from epochcast.describe.capture.config.deepspeed_config import is_deepspeed, read_deepspeed
from epochcast.describe.capture.config.lightning_settings import is_lightning, read_lightning
from epochcast.describe.capture.config.setting import ConfigSettings, InvalidSetting
from epochcast.describe.capture.config.training_arguments import (
    DEEPSPEED,
    is_training_arguments,
    read_training_arguments,
)
from epochcast.errors import BadInput, MissingExtra

MOST_BYTES = 1_000_000
"""A larger file is no config."""

Kind = tuple[Callable[[Mapping[str, Any]], bool], Callable[[str, Mapping[str, Any]], ConfigSettings]]
# In this order: Accelerate's file may hold DeepSpeed's words, and TrainingArguments those of both.
_KINDS: tuple[Kind, ...] = (
    (is_lightning, read_lightning),
    (is_accelerate, read_accelerate),
    (is_training_arguments, read_training_arguments),
    (is_deepspeed, read_deepspeed),
)
_KNOWN = "DeepSpeed, Accelerate, TrainingArguments, LightningCLI, a training script, a .keras model"


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
        case _:
            return document_settings(file.name, _document(file), file.parent)


def document_settings(name: str, document: Mapping[str, Any], folder: Path) -> tuple[ConfigSettings, ...]:
    """The same for a document that was read before; files that it names lie in `folder`."""
    for is_kind, read in _KINDS:
        if is_kind(document):
            return (read(name, document), *_inner(name, document, folder))
    keys = ", ".join(list(map(str, document))[:6]) or "nothing"
    raise BadInput(f"{name} is no file of settings that is known here ({_KNOWN}): it has {keys}")


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
    """The config that a file names by its path, beside the file or from here."""
    places = [place for place in (folder / inner, Path(inner)) if place.is_file()]
    if not places:
        raise InvalidSetting(name, f"there is no DeepSpeed config {inner!r}")
    yield read_deepspeed(places[0].name, _document(places[0]))


def _document(file: Path) -> Mapping[str, Any]:
    with file.open("rb") as stream:
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise BadInput(f"{file.name} has more than {MOST_BYTES:,} bytes, which is no file of settings")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"{file.name} is not text in UTF-8") from None
    is_json = file.suffix.casefold() in (".json", ".jsonc") or text.lstrip()[:1] in ("{", "[")
    document = _from_json(file.name, text) if is_json else _from_yaml(file.name, text)
    if not isinstance(document, Mapping) or not all(isinstance(key, str) for key in document):
        raise BadInput(f"{file.name} is no file of settings: it has no table of names and values")
    return document


def _from_json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        line = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise BadInput(f"{name} is not JSON{line}") from None


def _from_yaml(name: str, text: str) -> Any:
    try:
        import yaml
    except ModuleNotFoundError:
        raise MissingExtra("yaml", "PyYAML") from None

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
        """Without aliases, by which a small file can hold a huge table."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise BadInput(f"{name}: aliases (*name) are not read; write the values out")
            return super().compose_node(parent, index)

    try:
        return yaml.load(text, Loader=Loader)
    except (
        yaml.YAMLError,
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ) as error:
        if isinstance(error, BadInput):
            raise
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 1})" if mark is not None else ""
        raise BadInput(f"{name} is not YAML{line}") from None
