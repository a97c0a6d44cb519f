"""Figures as torch's profiler shows them on a processor with AVX2."""

from dataclasses import replace

import pytest

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph, Op
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import trace_from
from epochcast.hardware.catalogue import find_device
from epochcast.predict.memory.peak import peak_memory
from epochcast.predict.memory.reorders import reorder_bytes

CPU = replace(find_device("V100"), kind="cpu")


def conv(channels: int, out: int, precision: str = "fp32") -> list[Op]:
    """A 3x3 convolution of 16 maps of 28 x 28, and its two gradients."""

    def build(batch: int) -> Graph:
        b = Builder("conv", batch)
        x = b.conv(b.input("x", (channels, 28, 28)), channels, 1, name="first")
        return b.finish(b.conv(x, out, 3, padding=1, bias=False, name="conv"), loss="none")

    ops = trace_from(build, Recipe(16, mode="forward_backward", precision=precision)).ops
    return [op for op in ops if op.layer == "conv"]


# 16 x 64 x 28 x 28 floats are 3,211,264 bytes, 64 x 64 x 9 are 147,456.
def test_operands_and_result_are_copied() -> None:
    forward, data, weights = conv(64, 64)
    assert reorder_bytes(forward) == reorder_bytes(data) == (3_211_264, 147_456)
    assert reorder_bytes(weights) == (147_456, 2 * 3_211_264 - 147_456)


# 30 channels become 32, 50 become 56: 1,605,632 and 2,809,856 bytes, 64,512 of weights.
def test_channels_are_padded_to_whole_blocks() -> None:
    forward, *_ = conv(30, 50)
    assert reorder_bytes(forward) == (2_809_856, 1_605_632 + 64_512 - 2_508_800)


def test_pictures_are_read_as_they_are() -> None:
    forward, *_ = conv(3, 64)
    assert reorder_bytes(forward) == (3_211_264, 64 * 3 * 9 * 4 - 3_211_264)


def test_in_channels_last_only_weights_are_copied() -> None:
    forward, data, weights = conv(64, 64)
    assert {reorder_bytes(op, channels_last=True) for op in (forward, data, weights)} == {(147_456,)}


def test_half_precision_is_computed_without_copies() -> None:
    forward, *_ = conv(64, 64, precision="bf16")
    assert reorder_bytes(forward) == ()


@pytest.mark.parametrize("batch", [1, 7, 300])
def test_a_processor_holds_the_larger_of_two_moments(batch: int) -> None:
    """While it computes: copies of both operands and the result; while it copies back: the result twice."""

    def build(batch: int) -> Graph:
        b = Builder("conv", batch)
        return b.finish(b.conv(b.input("x", (8, 4, 4)), 64, 3, padding=1, bias=False, name="conv"), loss="none")

    found = peak_memory(trace_from(build, Recipe(batch, mode="forward")), CPU)
    x, w, y = 4 * batch * 8 * 16, 4 * 64 * 8 * 9, 4 * batch * 64 * 16
    assert found.bytes.mid == x + w + max(x + w + y, 2 * y)
