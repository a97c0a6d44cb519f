"""How a module keeps its weights: in float32, in half, or in few bits (bitsandbytes).

A module whose weights are in half computes in half, with autocast or without: the weights decide, not the option.
One in float32 that is to be trained in half is run in half, as after `module.to(torch.bfloat16)`: what it casts up to
float32 by itself (norms, softmax, the scores in front of a loss) is seen then, and only then.

Layers of bitsandbytes work on a GPU alone. For a capture they become linear layers of the format they compute in, their
weights marked as packed; describe/graph/quantised_base.py then counts their bytes and that they are unpacked before
every product.
Products of eight-bit weights run in eight bits forward; they are counted in half here.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import torch

from epochcast.describe.capture.torch.example_arguments import Example, mapped
from epochcast.describe.capture.torch.small_values import Unknown, Values
from epochcast.describe.graph.precision import OF_HALF_WEIGHTS, Method, Precision
from epochcast.describe.graph.quantised_base import EIGHT, FOUR
from epochcast.describe.graph.tensor import DType

FOLLOW_WEIGHTS = frozenset({"fp32", "fp32_strict", "tf32", "amp_fp16", "amp_bf16", "fp16", "bf16", *OF_HALF_WEIGHTS})
"""Precisions that leave the weights as the model has them."""

WIDE = "fp32"
_HALVES = {torch.float16: "fp16", torch.bfloat16: "bf16"}


def stored_in(module: torch.nn.Module) -> str | None:
    """The precision that follows from weights in half; None where most are in float32. Packed weights do not count."""
    elements: Counter[torch.dtype] = Counter()
    for part in module.modules():
        for parameter in () if isinstance(part, _Unpacked) else part.parameters(recurse=False):
            if parameter.is_floating_point():
                elements[parameter.dtype] += parameter.numel()
    return _HALVES.get(elements.most_common(1)[0][0]) if elements else None


def half_of(precision: Precision) -> str | None:
    """The half that a module is run in for a precision; None where that is float32."""
    is_stored = precision.method in (Method.STORED, Method.MASTERED, Method.AUTOCAST)
    return _STORED_HALVES.get(precision.weights.parameters) if is_stored else None


@contextmanager
def stored_as_half(module: torch.nn.Module, half: str | None, values: Values) -> Iterator[None]:
    """Inside, what the module keeps in float32 is in `half`, changed in place: losses and steps may refer to it. For
    `WIDE`, what it keeps in half is in float32.
    """
    if half is None:
        yield
        return
    dtype = _DTYPES[half]
    before = tuple(_HALVES) if half == WIDE else (torch.float32,)
    parameters = [(p, p.data) for p in module.parameters() if p.dtype in before]
    buffers = [
        (part, name, buffer)
        for part in module.modules()
        for name, buffer in part.named_buffers(recurse=False)
        if buffer.dtype in before
    ]
    try:
        for parameter, data in parameters:
            parameter.grad, parameter.data = None, data.to(dtype)
        for part, name, buffer in buffers:
            part._buffers[name] = _in_half(buffer, dtype, values)
        yield
    finally:
        for parameter, data in parameters:
            parameter.grad, parameter.data = None, data
        for part, name, buffer in buffers:
            part._buffers[name] = buffer


def example_in(example: Example, half: str | None, values: Values) -> Example:
    """The inputs with those of float32 in `half`."""
    if half is None:
        return example
    dtype = _DTYPES[half]

    def changed(tensor: torch.Tensor) -> torch.Tensor:
        return _in_half(tensor, dtype, values) if tensor.dtype is torch.float32 else tensor

    return replace(example, args=mapped(example.args, changed), kwargs=mapped(dict(example.kwargs), changed))


def _in_half(tensor: torch.Tensor, dtype: torch.dtype, values: Values) -> torch.Tensor:
    """The tensor in half, with its values where they are known."""
    half = tensor.to(dtype)
    with suppress(Unknown):
        values.keep(half, values.of(tensor))
    return half


_DTYPES = {**{name: dtype for dtype, name in _HALVES.items()}, WIDE: torch.float32}
_STORED_HALVES = {DType.FLOAT16: "fp16", DType.BFLOAT16: "bf16"}


class _Unpacked(torch.nn.Linear):
    """A linear layer that computes in the format of its weight and answers in that of its input."""

    bits = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bias: torch.Tensor | None = self.bias
        bias = None if bias is None else bias.to(self.weight.dtype)
        return torch.nn.functional.linear(x.to(self.weight.dtype), self.weight, bias).to(x.dtype)


def unpacked(module: torch.nn.Module) -> tuple[torch.nn.Module, tuple[tuple[str, int], ...]]:
    """The module with layers of bitsandbytes replaced in place, and the bits of their weights by name."""
    bits = _bits(module)
    if bits is not None:
        return _plain(module, bits), ((("weight", bits),) if bits else ())
    replaced: dict[torch.nn.Module, torch.nn.Module] = {}  # by the layer, which may be in several places
    for part in list(module.modules()):
        for name, child in list(part.named_children()):
            child_bits = _bits(child)
            if child_bits is not None:
                replaced.setdefault(child, _plain(child, child_bits))
                setattr(part, name, replaced[child])
    parts = ((name, part) for name, part in module.named_modules() if isinstance(part, _Unpacked))
    return module, tuple((f"{name}.weight", part.bits) for name, part in parts if part.bits)


def _bits(module: torch.nn.Module) -> int | None:
    """In how many bits a layer of bitsandbytes keeps its weight, 0 where it keeps it in half; None for any other."""
    kinds = {kind.__name__ for kind in type(module).__mro__ if kind.__module__.partition(".")[0] == "bitsandbytes"}
    if "Linear4bit" in kinds:
        return FOUR
    if "Linear8bitLt" in kinds:
        return 0 if getattr(module.state, "has_fp16_weights", False) else EIGHT
    return None


def _plain(layer: Any, bits: int) -> torch.nn.Module:
    compute = getattr(layer, "compute_dtype", None) or (torch.float32 if bits == FOUR else torch.float16)
    plain = _Unpacked(layer.in_features, layer.out_features, layer.bias is not None, device="meta", dtype=compute)
    plain.bits = bits
    plain.weight.requires_grad_(not bits and layer.weight.requires_grad)
    if layer.bias is not None:
        bias = torch.empty_like(layer.bias, device="meta", requires_grad=False)
        plain.bias = torch.nn.Parameter(bias, layer.bias.requires_grad)
    return plain


def packed_notes(packed: Iterable[tuple[str, int]]) -> Iterator[str]:
    """What to know of packed weights."""
    for bits, count in sorted(Counter(bits for _, bits in packed).items()):
        more = "; their products are counted in half precision" if bits == EIGHT else ""
        yield f"{count} weights are kept in {_WORDS[bits]} bits (bitsandbytes) and unpacked before every product{more}"


_WORDS = {FOUR: "four", EIGHT: "eight"}


def with_dense_gradients(module: torch.nn.Module) -> tuple[str, ...]:
    """Tables with sparse gradients get dense ones, in place; a note where there are some."""
    tables = [m for m in module.modules() if isinstance(m, torch.nn.Embedding | torch.nn.EmbeddingBag) and m.sparse]
    for table in tables:
        table.sparse = False
    note = "sparse gradients of tables are not modelled: dense ones are forecast, which need more time and memory"
    return (note,) if tables else ()
