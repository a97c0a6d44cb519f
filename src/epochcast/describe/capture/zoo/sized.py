"""Decoders of any size as large trainers run them (Megatron-LM, NeMo, nanotron), by a reference that says the sizes:

    decoder:layers=32,hidden=4096,heads=32,kv_heads=8,ffn=14336,vocab=128256

    style=llama       root-mean-square norms, rotary positions, gated silu, no biases           (the default)
    style=gpt         layer norms, learned positions, gelu, biases and dropout
    style=bloom       as gpt, with a norm behind the embedding and no table of positions (its positions, ALiBi, are a
                      bias of the scores, inside the attention kernel)
    style=nemotron    layer norms, rotary positions, squared relu, no biases
    style=handwritten as llama, but every formula is written out, a kernel per step (`handwritten`), as in course code

`gated`, `tied` (0 or 1) and `experts`, `chosen` (a mixture) vary them; `kv_heads` defaults to `heads`, `ffn` to four
widths. `window` is how many tokens a query looks at, itself among them, but for the last of every `global_every`
layers: window=1024,global_every=6 is Gemma 3's. Kernels skip the other tokens (Megatron-LM's --window-size).

Other than the zoo's models, which are Hugging Face's, these run fused kernels: one per norm and per rotation, one
product for queries, keys and values, one for both halves of a gate; logits are cast to float32 for the loss.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.model_reference import SIZES
from epochcast.describe.capture.zoo.attention_layers import (
    in_float32,
    join_heads,
    rms_norm,
    sequence_length,
    split_heads,
    token_ids,
)
from epochcast.describe.capture.zoo.decoder import is_global
from epochcast.describe.capture.zoo.handwritten import handwritten_layer, handwritten_turns
from epochcast.describe.capture.zoo.moe import Mixture, mixture_layer
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.op_kinds import Attention, Elementwise
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput, UnknownName

STYLES = ("llama", "gpt", "bloom", "nemotron", "handwritten")
CONTEXT = 4096
_MOST = 10**7

HOST_CLASS = "large_trainer"
"""The graphs of most styles have the kernels of large trainers, and their hosts launch them."""


@dataclass(frozen=True, slots=True)
class DecoderSizes:
    """What a reference says of a decoder."""

    layers: int
    hidden: int
    heads: int
    vocab: int
    kv_heads: int = 0
    ffn: int = 0
    style: str = "llama"
    gated: bool | None = None
    tied: bool | None = None
    experts: int = 0
    chosen: int = 0
    loop: bool = False
    """One product per expert instead of a grouped one."""
    window: int = 0
    global_every: int = 0

    def __post_init__(self) -> None:
        if self.style not in STYLES:
            raise UnknownName("style of decoder", self.style, STYLES)
        numbers = [item.name for item in fields(self) if item.type is int]
        for name in numbers:
            least = 1 if name in ("layers", "hidden", "heads", "vocab") else 0
            if not least <= getattr(self, name) <= _MOST:
                raise BadInput(f"decoder: {name} must be between {least} and {_MOST:,}, got {getattr(self, name)}")
        if self.style == "handwritten" and (self.experts or self.gated is False or self.groups != self.heads):
            raise BadInput("decoder: style=handwritten has a gate, no experts, and as many kv_heads as heads")
        if self.style == "handwritten" and self.window:
            raise BadInput("decoder: style=handwritten writes all scores out: leave window out")
        if self.global_every and not self.window:
            raise BadInput("decoder: global_every says which layers have no window: give a window, such as window=4096")
        if self.hidden % self.heads or self.heads % self.groups:
            raise BadInput(
                f"decoder: {self.heads} heads must divide the width {self.hidden}, {self.groups} kv_heads the heads"
            )

    @property
    def groups(self) -> int:
        """Key and value heads."""
        return self.kv_heads or self.heads

    @property
    def is_gated(self) -> bool:
        """As said, else by the style."""
        return self.style in ("llama", "handwritten") if self.gated is None else self.gated

    @property
    def is_tied(self) -> bool:
        """As said, else by the style: GPT's output is its token embedding."""
        return self.style in ("gpt", "bloom") if self.tied is None else self.tied

    @property
    def has_biases(self) -> bool:
        """Products and norms with biases, dropout behind them."""
        return self.style in ("gpt", "bloom")

    @property
    def has_rotations(self) -> bool:
        """Queries and keys are turned by their position."""
        return self.style in ("llama", "nemotron")

    @property
    def host_class(self) -> str | None:
        """What launches its kernels: a large trainer, unless somebody wrote it by hand."""
        return None if self.style == "handwritten" else HOST_CLASS

    @property
    def reference(self) -> str:
        """As `find_model` reads it; what has its default is left out."""
        parts = []
        for item in fields(self):
            value = getattr(self, item.name)
            if value != item.default:
                parts.append(f"{item.name}={int(value) if isinstance(value, bool) else value}")
        return f"{SIZES}:{','.join(parts)}"


def decoder_reference(columns: Mapping[str, Any]) -> str:
    """The reference of a row of a table: its columns `layers`, `hidden`, `heads`, `kv_heads`, `ffn`, `vocab` (or
    `vocabulary`), and where given `style`, `gated`, `tied`, `experts`, `chosen`. Cells without a value take what is
    known of the row's `model` by name and of its `note` ("untied embeddings"), else the default.

    >>> decoder_reference({"layers": 16, "hidden": 2048, "heads": 32, "kv_heads": 32, "ffn": 8192, "vocab": 131072})
    'decoder:layers=16,hidden=2048,heads=32,vocab=131072,kv_heads=32,ffn=8192'
    """
    values = {"vocab": columns.get("vocabulary"), **columns}
    cells = {item.name: values.get(item.name) for item in fields(DecoderSizes)}
    sizes = {**_sizes_by_name(columns), **{name: value for name, value in cells.items() if value is not None}}
    missing = [name for name in ("layers", "hidden", "heads", "vocab") if name not in sizes]
    if missing:
        raise BadInput(f"a decoder needs its {', '.join(missing)}")
    return DecoderSizes(**{name: _typed(name, value) for name, value in sizes.items()}).reference


# What models of these names are, by the beginning of a name.
_NAMES: Mapping[str, Mapping[str, Any]] = {
    "gpt": {"style": "gpt"},
    "bloom": {"style": "bloom"},
    "nemotron4": {"style": "nemotron"},
    "grok1": {"experts": 8, "chosen": 2},
}


def _sizes_by_name(columns: Mapping[str, Any]) -> dict[str, Any]:
    model, note = (str(columns.get(name) or "").casefold() for name in ("model", "note"))
    sizes_of_name = dict(next((sizes for start, sizes in _NAMES.items() if model.startswith(start)), {}))
    if "tied embeddings" in note:
        sizes_of_name["tied"] = "untied embeddings" not in note
    return sizes_of_name


def _typed(name: str, value: Any) -> Any:
    if name == "style":
        return str(value)
    try:
        number = int(value)
    except ValueError:
        raise BadInput(f"decoder: {name} must be a whole number, got {value!r}") from None
    return bool(number) if name in ("gated", "tied", "loop") else number


def sized_decoder(text: str, input_shape: tuple[int, ...] | None = None) -> BuiltModel:
    """The model of what follows `decoder:`."""
    values: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals:
            raise BadInput(f"'{SIZES}:{text}': write sizes as layers=32,hidden=4096,heads=32,vocab=32000")
        values[name.strip()] = value.strip()
    size_names = [item.name for item in fields(DecoderSizes)]
    for name in values:
        if name not in size_names:
            raise UnknownName("size of decoder", name, size_names)
    reference = decoder_reference(values)
    sizes = DecoderSizes(**{name: _typed(name, value) for name, value in values.items()})
    return BuiltModel(reference, partial(_graph, sizes, input_shape), host_class=sizes.host_class)


def _graph(sizes: DecoderSizes, input_shape: tuple[int, ...] | None, batch: int) -> Graph:
    length = sequence_length(SIZES, input_shape, CONTEXT)
    if sizes.style == "handwritten":
        return _handwritten(sizes, length, batch)
    b = Builder(SIZES, batch)
    with b.scope("model"):
        x = b.embedding(token_ids(b, length), sizes.vocab, sizes.hidden, name="embed_tokens")
        if sizes.style == "gpt":
            places = b.constant("position_ids", (1, length), b.inputs[0].dtype)
            x = b.add(x, b.embedding(places, length, sizes.hidden, name="embed_positions"))
        if sizes.style == "bloom":
            x = _norm(b, x, sizes, "embed_norm")
        if sizes.has_biases:
            x = b.dropout(x)
        turns = _turns(b, length, sizes) if sizes.has_rotations else ()
        for index in range(sizes.layers):
            with b.scope(f"layers.{index}"):
                window = 0 if is_global(index, sizes.global_every) else sizes.window
                x = b.add(x, _attention(b, _norm(b, x, sizes, "attention_norm"), sizes, turns, window))
                x = b.add(x, _feed_forward(b, _norm(b, x, sizes, "ffn_norm"), sizes))
        x = _norm(b, x, sizes, "norm")
    table = b.parameters["model.embed_tokens.weight"].tensor if sizes.is_tied else None
    logits = b.linear(x, sizes.vocab, bias=False, weight=table, name="lm_head")
    return b.finish(in_float32(b, logits), units_per_sample=length)


def _handwritten(sizes: DecoderSizes, length: int, batch: int) -> Graph:
    b = Builder(SIZES, batch)
    x = b.embedding(token_ids(b, length), sizes.vocab, sizes.hidden, name="token_embeddings")
    cos, sin = handwritten_turns(b, length, sizes.hidden // sizes.heads)
    for index in range(sizes.layers):
        with b.scope(f"layers.{index}"):
            x = handwritten_layer(b, x, sizes.heads, sizes.ffn or 4 * sizes.hidden, cos, sin)
    table = b.parameters["token_embeddings.weight"].tensor if sizes.is_tied else None
    x = rms_norm(b, x, name="ln_final")
    logits = b.linear(x, sizes.vocab, bias=False, weight=table, name="lm_head")
    return b.finish(logits, units_per_sample=length)


def _norm(b: Builder, x: Tensor, sizes: DecoderSizes, name: str) -> Tensor:
    return b.rms_norm(x, name=name) if sizes.style == "llama" else b.layer_norm(x, name=name)


def _turns(b: Builder, length: int, sizes: DecoderSizes) -> tuple[Tensor, ...]:
    """Cosines and sines of every position, made once."""
    shape = (1, 1, length, sizes.hidden // sizes.heads // 2)
    return tuple(b.constant(name, shape) for name in ("cos", "sin"))


def _attention(b: Builder, x: Tensor, sizes: DecoderSizes, turns: tuple[Tensor, ...], window: int) -> Tensor:
    each = sizes.hidden // sizes.heads
    with b.scope("attention"):
        widths = (sizes.hidden, sizes.groups * each, sizes.groups * each)
        parts = b.split(b.linear(x, sum(widths), bias=sizes.has_biases, name="qkv"), widths)
        counts = (sizes.heads, sizes.groups, sizes.groups)
        q, k, v = (split_heads(b, part, count) for part, count in zip(parts, counts, strict=True))
        if turns:
            q, k = (b.op(Elementwise("rotary"), [t, *turns], [t.shape], name="rotary")[0] for t in (q, k))
        kind = Attention(causal=True, window=window, dropout=sizes.style == "gpt")
        y = b.op(kind, [q, k, v], [q.shape], name="attention")[0]
        y = b.linear(join_heads(b, y), sizes.hidden, bias=sizes.has_biases, name="out")
        return b.dropout(y) if sizes.has_biases else y


def _feed_forward(b: Builder, x: Tensor, sizes: DecoderSizes) -> Tensor:
    ffn = sizes.ffn or 4 * sizes.hidden
    if sizes.experts:
        return mixture_layer(b, x, Mixture(sizes.experts, sizes.chosen or 1, ffn, is_looped=sizes.loop))
    with b.scope("mlp"):
        if sizes.is_gated:
            gate, up = b.split(b.linear(x, 2 * ffn, bias=sizes.has_biases, name="gate_up"), 2)
            y = b.mul(b.elementwise("silu", gate), up)
        else:
            function = "relu_squared" if sizes.style == "nemotron" else "gelu"
            y = b.elementwise(function, b.linear(x, ffn, bias=sizes.has_biases, name="up"))
        y = b.linear(y, sizes.hidden, bias=sizes.has_biases, name="down")
        return b.dropout(y) if sizes.has_biases else y
