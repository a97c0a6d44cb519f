"""Inside, `pretrained=True` of timm and `weights=…` of torchvision build the same network without its weights.

A forecast needs none, so a script that would fetch them is captured as it stands. Only libraries that the file names
are looked at. What comes from elsewhere (from_pretrained, torch.hub) is stopped with one line (`no_network`).
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from epochcast.describe.capture.model_reference import ModelReference
from epochcast.describe.capture.torch.torchvision_shim import import_timm, import_torchvision
from epochcast.errors import MissingExtra


class NoWeights(dict[str, Any]):
    """A state dictionary that was not fetched; loading it changes nothing."""


@contextmanager
def without_weights(reference: str) -> Iterator[None]:
    """While the file of a reference makes its model."""
    text = _text(reference)
    with ExitStack() as patches:
        with suppress(MissingExtra):  # what is absent is said where the model is made
            _enter(patches, text)
        yield


def _enter(patches: ExitStack, text: str) -> None:
    if "torchvision" in text and "weights" in text:
        api = import_torchvision().models._api
        load = torch.nn.Module.load_state_dict
        patches.enter_context(patch.object(api.WeightsEnum, "get_state_dict", lambda *_, **__: NoWeights()))

        def loaded(self: torch.nn.Module, state_dict: Any, *arguments: Any, **options: Any) -> Any:
            return None if isinstance(state_dict, NoWeights) else load(self, state_dict, *arguments, **options)

        patches.enter_context(patch.object(torch.nn.Module, "load_state_dict", loaded))
    if "timm" in text and "pretrained" in text:
        builder: Any = import_timm().models._builder
        patches.enter_context(patch.object(builder, "load_pretrained", lambda *_, **__: None))


def _text(reference: str) -> str:
    script = ModelReference.of(reference).script
    try:
        return Path(script).read_text(encoding="utf-8", errors="replace") if script else ""
    except OSError:
        return ""
