"""LoRA: a frozen network with trained low-rank updates beside chosen linear layers (Hu et al. 2021).

y = W x + (α/r) · B A dropout(x), A (r, in), B (out, r). Only A and B are trained.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from epochcast.describe.graph.adapters import LORA, matched
from epochcast.describe.graph.recipe import LORA_DROPOUT
from epochcast.errors import BadInput


class LoraLinear(nn.Module):
    """A linear layer, unchanged, and its update of rank `rank`."""

    def __init__(self, base: nn.Module, into: int, out: int, rank: int, alpha: float, dropout: float) -> None:
        super().__init__()
        self.base = base
        self.lora_dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        self.lora_a = nn.Linear(into, rank, bias=False, device="meta")
        self.lora_b = nn.Linear(rank, out, bias=False, device="meta")
        self.scale = alpha / rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """W x + (α/r) · B A dropout(x)."""
        base, update = self.base(x), self.lora_b(self.lora_a(self.lora_dropout(x)))
        result: torch.Tensor = base + update * self.scale
        return result


def with_lora(
    module: nn.Module,
    rank: int,
    targets: Sequence[str] = (),
    alpha: float | None = None,
    dropout: float = LORA_DROPOUT,
) -> nn.Module:
    """The module, frozen and changed in place: an update beside every linear layer whose last name is in `targets`."""
    if rank < 1:
        raise BadInput(f"`lora` must be a rank of at least 1, got {rank}")
    paths = target_paths(module, targets)
    module.requires_grad_(False)
    layers = [(path, layer) for path, layer in module.named_modules() if path in paths]
    for path, layer in layers:
        parent, _, name = path.rpartition(".")
        into, out = _sizes(layer) or (0, 0)
        setattr(module.get_submodule(parent), name, LoraLinear(layer, into, out, rank, alpha or 2.0 * rank, dropout))
    return module


def target_paths(module: nn.Module, targets: Sequence[str], adapter: str = LORA) -> set[str]:
    """The paths of the linear layers that get an adapter."""
    linear = [path for path, layer in module.named_modules() if path and _sizes(layer)]
    return matched(targets, linear, _all_linear(module), adapter)


def _all_linear(module: nn.Module) -> set[str]:
    """All linear layers but the one that scores the vocabulary."""
    tables = [layer.num_embeddings for layer in module.modules() if isinstance(layer, nn.Embedding)]
    sizes = {path: _sizes(layer) for path, layer in module.named_modules() if path}
    vocabulary = max(tables, default=0)
    return {path for path, size in sizes.items() if size is not None and size[1] != vocabulary}


def _sizes(layer: Any) -> tuple[int, int] | None:
    """(in, out) of a linear layer; Hugging Face's Conv1D is one with its weight transposed."""
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    if type(layer).__name__ == "Conv1D" and hasattr(layer, "nf"):
        return int(layer.weight.shape[0]), int(layer.weight.shape[1])
    return None
