"""Networks of diffusers by name or configuration, without weights.

    diffusers:flux1-dev                             a published configuration (`diffusers_models.toml`), or its Hub id
    diffusers:FluxTransformer2DModel(num_layers=4)  a class of diffusers, its arguments as literals
    diffusers:transformer/config.json               a configuration file, or the folder that holds it

The input is a latent, as `input_shape`: (channels, height, width) or (channels, frames, height, width). A shape with
three channels is a picture or video in pixels, and its latent follows from the autoencoder's factors. Text encoders and
autoencoder are not part of the network: trainers compute their results once and cache them, or run them in every step
(`frozen_encoders`). The loss is the squared
error of what the network predicts.
"""

import logging
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.resources import files
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epochcast.base.caching import remembered
from epochcast.base.documents import parse_json, read_text
from epochcast.base.name_matching import plain
from epochcast.describe.capture.capture_cache import CachedModel, about
from epochcast.describe.capture.hf import Reference, parse_reference
from epochcast.describe.capture.model import Model
from epochcast.describe.capture.model_reference import CONFIG, DIFFUSERS, ModelReference
from epochcast.describe.capture.workload import Workload
from epochcast.errors import BadInput, MissingExtra, UnknownName

if TYPE_CHECKING:
    from epochcast.describe.capture.torch.torch_model import TorchModel

_FILE = "diffusers_models.toml"
UNET = "UNet2DConditionModel"
_CHANNELS = (4, 16)
"""Of a latent of an autoencoder as Stable Diffusion's and FLUX's."""


@dataclass(frozen=True)
class DiffusionModel:
    """A published network: its class and the arguments that differ from the defaults. `pixels` and `frames` are those
    of a picture or video per value of its latent, by side and in time; `text_tokens` those of a prompt.
    """

    class_name: str
    config: Mapping[str, Any] = field(default_factory=dict)
    latent: tuple[int, ...] = ()
    pixels: int = 8
    frames: int = 4
    text_tokens: int = 256
    ids: tuple[str, ...] = ()
    encoders: Mapping[str, int] = field(default_factory=dict)
    """Encoders of the prompt, and how many tokens each reads."""
    network: str = ""
    """The same network among those that are built here."""

    @property
    def host_class(self) -> str | None:
        """The host of its trainings (`hosts.toml`)."""
        return "diffusion_trainer" if self.class_name == UNET else "diffusion_transformer"


@remembered(1)
def diffusion_models() -> Mapping[str, DiffusionModel]:
    """The published networks by name."""
    document = tomllib.loads(files("epochcast.describe.capture").joinpath(_FILE).read_text(encoding="utf-8"))
    return {name: _read_model(entry) for name, entry in document["model"].items()}


def diffusers_name(hub_id: str) -> str:
    """The published network of a Hub id; empty where none is known."""
    return next((name for name, model in diffusion_models().items() if hub_id.casefold() in model.ids), "")


def diffusion_model_of(text: str) -> DiffusionModel | None:
    """The diffusion model that a reference means, by its own name, its Hub id, or that of the network built here."""
    from epochcast.describe.capture.hub import network_of

    parts = ModelReference.of(text)
    name = diffusers_name(parts.name) or parts.name
    if parts.prefix == DIFFUSERS or diffusers_name(text):
        return _asked(name)
    built = network_of(text)
    return next((model for model in diffusion_models().values() if model.network and model.network == built), None)


def is_picture_model(model: DiffusionModel) -> bool:
    """Whether its latents are those of the usual autoencoder of pictures, an eighth of each side."""
    return len(model.latent) == 3 and model.pixels == DiffusionModel.pixels and model.latent[0] in _CHANNELS


def load_diffusers(name: str, input_shape: tuple[int, ...] | None = None) -> Model:
    """The model of what follows `diffusers:`; its captures are cached on disk."""
    name = diffusers_name(name) or name
    text = str(ModelReference(DIFFUSERS, name))
    model = _asked(name)
    shape = latent_of(model, input_shape, text)
    return CachedModel(text, about(text, shape, {}), lambda: _captured(text, model, shape), model.host_class)


def _read_model(entry: Mapping[str, Any]) -> DiffusionModel:
    of_pipeline = {key: entry[key] for key in ("encoders", "network") if key in entry}
    values = {key: entry[key] for key in ("pixels", "frames", "text_tokens") if key in entry}
    config = {**entry.get("config", {}), **dict.fromkeys(entry.get("unset", ()))}
    return DiffusionModel(
        entry["class"], config, tuple(entry["latent"]), **values, ids=tuple(entry.get("ids", ())), **of_pipeline
    )


def _asked(name: str) -> DiffusionModel:
    """A published network, else a class or a file with its own arguments."""
    named = next((model for model_name, model in diffusion_models().items() if plain(model_name) == plain(name)), None)
    if named is not None:
        return named
    is_configured = name.endswith(".json") or "(" in name or (name[:1].isupper() and "/" not in name)
    if not is_configured and not Path(name).is_dir():
        ids = (hub_id for model in diffusion_models().values() for hub_id in model.ids)
        raise UnknownName("diffusion model", name, [*diffusion_models(), *ids])
    reference = parse_reference(f"{CONFIG}:{name}")
    class_name, config = _from_file(reference) if reference.path else (reference.config, dict(reference.overrides))
    alike = next((model for model in diffusion_models().values() if model.class_name == class_name), None)
    if alike is None:
        raise UnknownName("network of diffusers", class_name, {m.class_name for m in diffusion_models().values()})
    return replace(alike, config=config)


def _from_file(reference: Reference) -> tuple[str, dict[str, Any]]:
    path = Path(reference.path)
    file = path / "config.json" if path.is_dir() else path
    if not file.exists():
        raise BadInput(f"there is no file {str(file)!r}")
    values = parse_json(read_text(file), str(file))
    if not isinstance(values, dict) or not isinstance(values.get("_class_name"), str):
        raise BadInput(f"{file} has no _class_name, so it is not a configuration of diffusers")
    return values["_class_name"], {name: value for name, value in values.items() if not name.startswith("_")}


def latent_of(model: DiffusionModel, shape: tuple[int, ...] | None, text: str) -> tuple[int, ...]:
    """The shape of the latent: as given, or of a picture or video in pixels."""
    if shape is None:
        return model.latent
    is_video = len(model.latent) == 4
    if is_video and len(shape) == 3:
        shape = (shape[0], 1, *shape[1:])  # one frame
    if len(shape) != len(model.latent):
        example = "x".join(str(size) for size in model.latent)
        raise BadInput(f"{text} takes a latent such as {example}, or pixels such as 3x512x512")
    if shape[0] != 3:
        return shape
    if any(side % model.pixels for side in shape[-2:]):
        raise BadInput(f"{text}: sides of a picture are multiples of {model.pixels}, got {shape[-2]}x{shape[-1]}")
    sides = tuple(side // model.pixels for side in shape[-2:])
    frames = ((shape[1] - 1) // model.frames + 1,) if is_video else ()
    return (model.latent[0], *frames, *sides)


def _captured(text: str, model: DiffusionModel, latent: tuple[int, ...]) -> "TorchModel":
    diffusers = _diffusers()
    from epochcast.describe.capture.torch.diffusion_inputs import (
        diffusion_example,
        forget_between_passes,
        squared_error,
    )
    from epochcast.describe.capture.torch.meta_modules import constructed
    from epochcast.describe.capture.torch.small_values import Values
    from epochcast.describe.capture.torch.user_workload import from_workload

    with _without_warnings():  # the module behind it imports all that may quantise it
        kind = getattr(diffusers, model.class_name)
    _check_arguments(kind, model.config, text)
    values = Values()
    try:
        module = constructed(lambda: kind.from_config({**model.config}), text, values)
    except (TypeError, ValueError, KeyError) as problem:
        raise BadInput(f"{text} is not a valid configuration: {str(problem).splitlines()[0]}") from problem
    forget_between_passes(module)
    example = diffusion_example(model.class_name, module.config, latent, model.text_tokens)
    workload = Workload(module, example, squared_error, name=text)
    return from_workload(workload, text, None, values, in_place=True)


def _check_arguments(kind: Any, config: Mapping[str, Any], text: str) -> None:
    """Typed arguments are those of the class; files also hold what other versions of diffusers wrote."""
    arguments = [name for name in signature(kind.__init__).parameters if name != "self"]
    absent = sorted(set(config) - set(arguments)) if "(" in text else []
    if absent:
        raise UnknownName(f"argument of {kind.__name__}", absent[0], arguments)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Without what libraries log while they are imported: what they would lack on this machine's processor."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _diffusers() -> Any:
    try:
        import torch  # noqa: F401

        from epochcast.describe.capture.torch.torchvision_shim import import_torchvision

        with suppress(MissingExtra):
            import_torchvision()  # transformers, which it imports, fails without the shim
        import diffusers
    except ModuleNotFoundError as absent:
        raise MissingExtra("diffusers", absent.name) from None
    return diffusers
