"""Megatron's formulas of memory, worked out by hand."""

from dataclasses import replace

import pytest

from studies.memory.megatron import MegatronLayout

TINY = MegatronLayout(
    layers=4,
    hidden=8,
    heads=2,
    vocab=100,
    kv_heads=1,
    ffn=16,
    is_gated=True,
    has_layer_norms=False,
    is_tied=False,
    length=32,
    micro_batch=3,
    micro_batches=2,
)
LAYER = 2 * 8 * 8 * 1.5 + 2 * 8 * (16 * 1.5 + 1)
VALUES = 32 * 3 * 8


def test_the_fullest_stage_has_its_layers_and_a_table() -> None:
    assert TINY.parameters == 4 * LAYER + 8 + 2 * 100 * 8
    assert replace(TINY, pipeline=2, tensor=2).parameters == ((4 * LAYER + 8) / 2 + 100 * 8) / 2
    assert replace(TINY, is_tied=True).parameters == 4 * LAYER + 8 + 100 * 8


def test_a_parameter_takes_18_bytes_or_12_of_them_shared() -> None:
    assert TINY.state_bytes == 18 * TINY.parameters
    assert replace(TINY, is_distributed=True, data=4).state_bytes == (6 + 12 / 4) * TINY.parameters


def test_activations_with_and_without_sequence_parallelism() -> None:
    split = replace(TINY, tensor=2)
    layers, embedded = VALUES * (10 + 24 / 2) * 4, 8 * 32 * 3 + VALUES
    assert split.activation_bytes == pytest.approx(1.05 * (layers + embedded + 2 * (32 * 3 * 100 / 2 + VALUES)))
    layers = VALUES * (18 + 4 * 16 / 8) * 4
    of_sequence = replace(split, is_sequence_parallel=True)
    assert of_sequence.activation_bytes == pytest.approx((layers + embedded + 4 * VALUES * (1 + 100 / 8)) / 2)


def test_a_pipeline_holds_no_more_micro_batches_than_there_are() -> None:
    """Four stages of which two micro-batches fill two."""
    staged = replace(TINY, pipeline=4, is_sequence_parallel=True)
    layers, embedded = VALUES * (18 + 4 * 16 / 8) * 4, 4 * (8 * 32 * 3 + VALUES)
    assert staged.activation_bytes == pytest.approx((layers + embedded) / 2)
