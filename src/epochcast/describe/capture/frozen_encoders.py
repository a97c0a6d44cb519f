"""A diffusion network with the frozen encoders that run in front of it in every step.

Trainers that do not cache them encode pictures by the autoencoder and prompts by the text encoders each time. Both run
forward alone, in the half format of the step, and their weights lie beside the network's:

    step = encoders, forward, in half · network, forward and backward · update

`--encoders` says which: text, vae or all. Cached (the default), they cost nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from epochcast.base.caching import Cache
from epochcast.describe.capture.diffusers_models import DiffusionModel, diffusion_model_of, is_picture_model, latent_of
from epochcast.describe.capture.hub import UNET_NOTE
from epochcast.describe.capture.model import BuiltModel, Model
from epochcast.describe.capture.sample_contents import ALL, PICTURES, TEXT
from epochcast.describe.capture.zoo.diffusion_encoders import picture_encoder, text_encoder
from epochcast.describe.graph.op import Graph, Parameter
from epochcast.describe.graph.precision import find_precision
from epochcast.describe.graph.rebatch import Template
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import DType
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput

_HALVES: Mapping[DType, str] = {DType.FLOAT16: "fp16", DType.BFLOAT16: "bf16"}
_LABELS = {TEXT: "text encoders in the step", PICTURES: "VAE in the step", ALL: "VAE and text encoders in the step"}


def with_encoders(model: Model, text: str, input_shape: tuple[int, ...] | None, which: str) -> Model:
    """The model of a reference, with encoders in front."""
    kind = diffusion_model_of(text)
    if kind is None:
        raise BadInput(f"--encoders is for diffusion models, not for {text}")
    return EncodedModel(model, tuple(_encoders(kind, text, input_shape, which)), which)


@dataclass(frozen=True, eq=False)
class EncodedModel:
    """A network and the encoders that run before it."""

    network: Model
    encoders: tuple[BuiltModel, ...]
    which: str
    _traces: Cache[Recipe, Trace] = field(init=False, repr=False, default_factory=partial(Cache, 32))

    @property
    def name(self) -> str:
        """That of the network."""
        return self.network.name

    @property
    def host_class(self) -> str | None:
        """That of the network's trainer."""
        return getattr(self.network, "host_class", None)

    def graph(self, batch: int) -> Graph:
        """The network alone, which is what is trained."""
        return self.network.graph(batch)

    def trace(self, recipe: Recipe) -> Trace:
        """One step: the encoders' forward passes, then the network's step."""
        return self._traces.get(recipe, lambda: self._joined(recipe))

    def _joined(self, recipe: Recipe) -> Trace:
        step = self.network.trace(recipe)
        products = find_precision(step.recipe.precision).products
        half = _HALVES.get(products, "fp32")
        own = Recipe(recipe.batch, mode="forward", precision=half, attention=recipe.attention)
        passes = [encoder.trace(own) for encoder in self.encoders]
        kept = products if products in _HALVES else DType.FLOAT32
        parameters = tuple(_frozen(each, kept) for passed in passes for each in passed.parameters)
        template = Template(
            tuple(op for each in passes for op in each.template.base) + step.template.base,
            tuple(growth for each in passes for growth in each.template.growths) + step.template.growths,
        )
        contents = " · ".join(filter(None, (step.contents, _LABELS[self.which])))
        notes = tuple(note for note in step.notes if note != UNET_NOTE)
        return replace(
            step, template=template, parameters=(*parameters, *step.parameters), contents=contents, notes=notes
        )


def _frozen(parameter: Parameter, kept: DType) -> Parameter:
    return replace(parameter, trainable=False, tensor=replace(parameter.tensor, dtype=kept))


def _encoders(kind: DiffusionModel, text: str, input_shape: tuple[int, ...] | None, which: str) -> list[BuiltModel]:
    encoders: list[BuiltModel] = []
    if which in (TEXT, ALL):
        if not kind.encoders:
            raise BadInput(f"the text encoders of {text} are not known: give --encoders cached")
        encoders += [BuiltModel(name, partial(_text, name, tokens)) for name, tokens in kind.encoders.items()]
    if which in (PICTURES, ALL):
        latent = latent_of(kind, input_shape, text)
        if not is_picture_model(kind):
            raise BadInput(f"the autoencoder of {text} is not known: give --encoders text, or cached")
        build: Callable[[int], Graph] = partial(_pictures, latent)
        encoders.append(BuiltModel("vae", build))
    return encoders


def _text(name: str, tokens: int, batch: int) -> Graph:
    return text_encoder(batch, name, tokens)


def _pictures(latent: tuple[int, ...], batch: int) -> Graph:
    channels, height, width = latent
    return picture_encoder(batch, channels, height, width)
