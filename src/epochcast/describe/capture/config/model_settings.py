"""What surrounds a model and says how it is trained: the script that makes it, its class, or what it was compiled with.

Nothing is run. Of a Lightning module the source file is read, of a Keras model the config.
"""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from epochcast.describe.capture.config.setting import ConfigSetting, ConfigSettings
from epochcast.describe.capture.hub_names import stored_format
from epochcast.describe.capture.model_reference import ModelReference
from epochcast.errors import EpochcastError

_KERAS = {"keras", "tensorflow", "tf_keras"}


def model_settings(model: object) -> tuple[ConfigSettings, ...]:
    """The settings around a reference or a live model; nothing where there are none or they cannot be read."""
    try:
        if isinstance(model, str | Path):
            return _of_reference(str(model))
        return _of_object(model)
    except (EpochcastError, OSError):
        return ()  # the error is raised where the model is made


def _of_reference(reference: str) -> tuple[ConfigSettings, ...]:
    if reference.casefold().endswith(".keras"):
        from epochcast.describe.capture.config.keras_settings import compiled_settings
        from epochcast.describe.capture.keras.archive import read_config

        return (compiled_settings(Path(reference).name, read_config(Path(reference))),)
    parts = ModelReference.of(reference)
    if parts.script and Path(parts.script).is_file():
        from epochcast.describe.capture.script.script_settings import script_settings

        return script_settings(Path(parts.script), parts.factory)
    return _of_name(parts.name)


def _of_name(name: str) -> tuple[ConfigSettings, ...]:
    """What the name of an upload says: how its weights are quantised."""
    stored = stored_format(name) if not Path(name).exists() else ""
    if not stored:
        return ()
    return (ConfigSettings(name, "", (ConfigSetting("quantize", stored, "its name"),), is_strict=False),)


def _of_object(model: object) -> tuple[ConfigSettings, ...]:
    packages = {cls.__module__.partition(".")[0] for cls in type(model).__mro__}
    if packages & _KERAS:
        return _of_keras(model)
    if packages & {"lightning", "pytorch_lightning"}:
        from epochcast.describe.capture.script.script_settings import script_settings

        source = inspect.getsourcefile(type(model))
        return () if source is None else script_settings(Path(source), type(model).__name__)
    return ()


def _of_keras(model: Any) -> tuple[ConfigSettings, ...]:
    from epochcast.describe.capture.config.keras_settings import compiled_settings
    from epochcast.describe.capture.keras.archive import live_config

    config = dict(live_config(model))
    compiled = model.get_compile_config() if getattr(model, "compiled", False) else None
    if isinstance(compiled, Mapping):
        config["compile_config"] = compiled
    return (compiled_settings(str(getattr(model, "name", "model")), config),)
