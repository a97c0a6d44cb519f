"""Spec files: models written by hand (a list of layers) or saved from a capture (ops). Nothing is run.

`docs/reference/spec.md` describes both forms.
"""

import json
from pathlib import Path
from typing import Any

from epochcast.base.atomic_files import write_text
from epochcast.base.documents import parse_json, parse_toml, read_text
from epochcast.describe.capture.model import Model
from epochcast.describe.capture.read_errors import reading
from epochcast.describe.capture.spec.saved_spec import saved_from_json, saved_to_json
from epochcast.describe.capture.spec.spec_layers import layered
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput

__all__ = ["load_spec", "read_document", "save_spec", "spec_model"]


def load_spec(path: str | Path, input_shape: tuple[int, ...] | None = None) -> Model:
    """The model a spec file describes. `input_shape` replaces the (first) input of a list of layers."""
    file = Path(path)
    with reading(file.name):
        return spec_model(read_document(file), file.name, file.stem, input_shape)


def spec_model(
    document: dict[str, Any], file: str, default_name: str, input_shape: tuple[int, ...] | None = None
) -> Model:
    """The same from a document that is already read; `file` is what messages call it."""
    if "layers" in document and "graph" not in document:
        return layered(document, file, default_name, input_shape)
    if "graph" in document:
        return saved_from_json(document, file, input_shape)
    if "class_name" in document:
        raise BadInput(f"{file} is a Keras model, not a spec; give it as a Keras .json")
    raise BadInput(f"{file} is no spec: it has neither 'layers' (written by hand) nor 'graph' (saved by inspect)")


def save_spec(model: Model, path: str | Path, recipe: Recipe | None = None) -> None:
    """Writes the ops form, whole or not at all. Of a captured model the step of `recipe` is kept as it was captured."""
    file = Path(path)
    if file.suffix.casefold() != ".json":
        raise BadInput(f"a saved spec is JSON: name it {file.with_suffix('.json').name}, not {file.name}")
    text = json.dumps(saved_to_json(model, recipe), separators=(",", ":"), ensure_ascii=False)
    try:
        write_text(file, text)
    except OSError as error:
        raise BadInput(f"cannot write {file}: {error.strerror}") from None


def read_document(file: Path) -> dict[str, Any]:
    """The TOML or JSON object of a file, by its ending."""
    parse = parse_toml if file.suffix.casefold() == ".toml" else parse_json
    document = parse(read_text(file), file.name)
    if not isinstance(document, dict):
        raise BadInput(f"{file.name} must hold an object, got a {type(document).__name__}")
    return document
