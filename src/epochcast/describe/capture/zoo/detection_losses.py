"""Losses of detectors, as ops: each ends in one number, which is an output of its graph.

Targets are inputs (what matching and sampling make of the annotations): they come for a whole batch at once, and their
making is not counted beyond the overlaps of boxes (`proposals.overlaps`).
"""

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op_kinds import Copy, Loss
from epochcast.describe.graph.tensor import DType, Tensor


def _loss(b: Builder, function: str, x: Tensor, target: Tensor, name: str) -> Tensor:
    return b.op(Loss(function), [x, target], [(1,)], name=name)[0]


def cross_entropy(b: Builder, logits: Tensor, name: str) -> Tensor:
    """−log softmax at the target, classes last."""
    per_sample = (logits.shape[0] // b.batch, *logits.shape[1:-1])
    target = b.input(f"{name}.target", per_sample, DType.INT64)
    return _loss(b, "nll", b.softmax(logits, log=True, name=f"{name}.log_softmax"), target, name)


def box_loss(b: Builder, deltas: Tensor, name: str) -> Tensor:
    """Smooth L1 (Girshick 2015) or L1 of the boxes of positive samples, (…, 4)."""
    return _loss(b, "smooth_l1", deltas, _like(b, deltas, name), name)


def binary_cross_entropy(b: Builder, logits: Tensor, name: str, target: Tensor | None = None) -> Tensor:
    """Of a sigmoid with every target."""
    return _loss(b, "bce", logits, _like(b, logits, name) if target is None else target, name)


def _like(b: Builder, x: Tensor, name: str) -> Tensor:
    return b.input(f"{name}.target", (x.elements // b.batch,))


def fused_focal_loss(b: Builder, logits: Tensor, name: str) -> Tensor:
    """−α(1−p)^γ log p (Lin et al. 2017, "Focal loss") in one kernel, as mmdetection has it: keeps the logits alone."""
    classes = logits.shape[-1]
    target = b.input(f"{name}.target", (logits.elements // classes // b.batch,), DType.INT64)
    return _loss(b, "focal", logits, target, name)


def focal_loss(b: Builder, logits: Tensor, name: str) -> Tensor:
    """The same written out element by element over the anchors that count, as torchvision and fvcore have it: it keeps
    eight tensors of the logits' size, which for RetinaNet are the largest of the whole step.
    """
    with b.scope(name):
        logits = b.gather("index", logits, logits.shape, name="counted")
        labels = b.input("labels", (logits.elements // logits.shape[-1] // b.batch,), DType.INT64)
        target = b.op(Copy("one_hot"), [labels], [logits.shape], dtypes=[logits.dtype], name="one_hot")[0]
        p = b.elementwise("sigmoid", logits)
        entropy = b.elementwise("bce", logits, target)
        hit = b.mul(p, target, name="hit")
        miss = b.mul(b.elementwise("neg", p), b.elementwise("neg", target), name="miss")
        wrong = b.elementwise("neg", b.add(hit, miss, name="right"), name="wrong")
        scaled = b.mul(entropy, b.elementwise("pow", wrong), name="scaled")
        balanced = b.mul(b.elementwise("scale", target, name="alpha"), scaled, name="balanced")
        return b.reduce("sum", balanced, range(len(balanced.shape)), name="sum")
