"""Rotary positions (Su et al. 2021): the pairs of every head are turned by an angle that grows with the position."""

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.tensor import Tensor


def rotations(b: Builder, length: int, width: int) -> tuple[Tensor, Tensor]:
    """cos and sin of position times frequency for heads (or the part of a head that turns) of `width`; once a step."""
    with b.scope("rotary_emb"):
        angles = b.elementwise("mul", b.constant("frequencies", (1, length, width // 2)))
        both = b.concatenate([angles, angles], -1)
        cos, sin = (b.elementwise("scale", b.elementwise(function, both)) for function in ("cos", "sin"))
        shape = (1, 1, length, width)
        return b.view(cos, shape, "unsqueeze"), b.view(sin, shape, "unsqueeze")


def rotated(b: Builder, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x·cos + (−x₂, x₁)·sin over the two halves of every head; what of a head is wider than the angles stays."""
    turning = cos.shape[-1]
    if turning < x.shape[-1]:
        part, rest = b.split(x, (turning, x.shape[-1] - turning))
        return b.concatenate([rotated(b, part, cos, sin), rest], -1)
    straight = b.mul(x, cos)
    first, second = b.split(x, 2)
    turned = b.concatenate([b.elementwise("neg", second), first], -1)
    return b.add(straight, b.mul(turned, sin))
