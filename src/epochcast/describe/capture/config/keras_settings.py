"""What a Keras model was compiled with: its optimizer, XLA, and the dtype policy of its layers.

`.keras` archives have it beside the layers, as `compile_config`; a live model gives the same. Nothing is built.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from epochcast.describe.capture.config.optimizers import match_optimizer
from epochcast.describe.capture.config.precisions import KERAS
from epochcast.describe.capture.config.setting import ConfigSettings, Reader

KIND = "Keras model"
_DEEPEST = 20
"""Nested models deeper than this are not looked into for a policy."""


def compiled_settings(name: str, config: Mapping[str, Any]) -> ConfigSettings:
    """What the config of a compiled model says of a job; nothing where it was not compiled."""
    reader = Reader(name, config)
    reader.read_keys |= set(config)
    compiled = config.get("compile_config")
    if isinstance(compiled, Mapping):
        _read_optimizer(reader, compiled.get("optimizer"))
        if compiled.get("jit_compile") is True:
            reader.set("compile", "xla", "compile_config.jit_compile")
        accumulate = _inner(compiled.get("optimizer")).get("gradient_accumulation_steps")
        if isinstance(accumulate, int) and accumulate > 1:
            reader.set("accumulate", accumulate, "compile_config.optimizer")
    policy = _policy(config)
    if policy in KERAS and policy != "float32":
        reader.set("precision", KERAS[policy], "dtype policy")
    elif policy and policy not in KERAS:
        reader.leave("dtype policy", policy)
    settings = reader.settings(KIND)
    return ConfigSettings(name, KIND, settings.settings, settings.not_modelled, (), settings.notes, is_strict=False)


def _read_optimizer(reader: Reader, optimizer: Any) -> None:
    """An optimizer as text ("adam"), or as a class with its arguments; one that scales the loss holds another."""
    key = "compile_config.optimizer"
    arguments: Mapping[str, Any] = {}
    if isinstance(optimizer, str):
        name = optimizer
    elif isinstance(optimizer, Mapping):
        name, arguments = str(optimizer.get("class_name", "")), _inner(optimizer)
        inner = arguments.get("inner_optimizer")
        if inner is not None:
            _read_optimizer(reader, inner)
            return
    else:
        return
    optimizer = match_optimizer(
        name.rpartition(">")[2],
        momentum=arguments.get("momentum", 0.0) if name.casefold().endswith("sgd") else None,
        nesterov=arguments.get("nesterov"),
    )
    reader.set("optimizer", optimizer.name, key, problem=optimizer.problem)
    if optimizer.note:
        reader.notes.append(optimizer.note)


def _inner(optimizer: Any) -> Mapping[str, Any]:
    config = optimizer.get("config") if isinstance(optimizer, Mapping) else None
    return config if isinstance(config, Mapping) else {}


def _policy(config: Mapping[str, Any]) -> str:
    """The policy that most layers have: a last layer is often kept in float32 on purpose."""
    counts = Counter(_policies(config, 0))
    return counts.most_common(1)[0][0] if counts else ""


def _policies(config: Mapping[str, Any], depth: int) -> Iterator[str]:
    inner = config.get("config")
    if not isinstance(inner, Mapping) or depth > _DEEPEST:
        return
    layers = inner.get("layers")
    if isinstance(layers, list):
        for layer in layers:
            if isinstance(layer, Mapping):
                yield from _policies(layer, depth + 1)
        return
    dtype = inner.get("dtype")
    name = dtype if isinstance(dtype, str) else _inner(dtype).get("name")
    if isinstance(name, str) and config.get("class_name") != "InputLayer":
        yield name
