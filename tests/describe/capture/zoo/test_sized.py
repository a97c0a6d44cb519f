"""Decoders by their sizes: parameters counted by hand, references that say the same, refusals in one line."""

from dataclasses import replace

import pytest

from epochcast.describe.capture.model_reference import ModelReference
from epochcast.describe.capture.resolve import find_model
from epochcast.describe.capture.zoo.sized import DecoderSizes, decoder_reference, sized_decoder
from epochcast.describe.graph.op_kinds import Attention, Matmul
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.training import step_ops
from epochcast.errors import EpochcastError
from epochcast.predict.forecast.job import Job
from epochcast.predict.memory.peak import peak_memory

SIZES = {"layers": 3, "hidden": 64, "heads": 8, "kv_heads": 2, "ffn": 160, "vocab": 500}


def count(tokens: int = 16, **sizes: object) -> int:
    reference = decoder_reference({**SIZES, **sizes})
    return find_model(reference, (tokens,)).graph(1).parameter_count


def test_parameters_by_style() -> None:
    h, layers, ffn, vocab, kv = 64, 3, 160, 500, 2 * 8
    attention = h * (h + 2 * kv) + h * h
    assert count() == 2 * vocab * h + layers * (attention + 3 * h * ffn + 2 * h) + h
    assert count(tied=1) == count() - vocab * h
    with_biases = attention + (h + 2 * kv) + h + 2 * h * ffn + ffn + h + 4 * h
    assert count(style="gpt") == (vocab + 16) * h + layers * with_biases + 2 * h
    assert count(style="bloom") == vocab * h + 2 * h + layers * with_biases + 2 * h
    assert count(style="nemotron") == 2 * vocab * h + layers * (attention + 2 * h * ffn + 4 * h) + 2 * h
    assert count(experts=4, chosen=2) == count() + layers * (3 * 3 * h * ffn + 4 * h)


def test_a_row_of_a_table_names_style_and_ties() -> None:
    row = {**SIZES, "kv_heads": None, "model": "gpt-0.2B", "note": "untied embeddings; more"}
    assert decoder_reference(row) == "decoder:layers=3,hidden=64,heads=8,vocab=500,ffn=160,style=gpt,tied=0"
    assert "experts=8,chosen=2" in decoder_reference({**SIZES, "model": "grok1-314b"})
    sizes = DecoderSizes(3, 64, 8, 500, kv_heads=2, ffn=160)
    assert find_model(sizes.reference).name == sizes.reference
    assert not ModelReference.of(sizes.reference).is_code
    assert Job(sizes.reference, batch=1).model == sizes.reference


def test_logits_are_wide_for_the_loss_and_rotations_keep_no_input() -> None:
    trace = find_model(decoder_reference(SIZES), (16,)).trace(Recipe(2, precision="bf16"))
    loss = next(op for op in trace.ops if op.name.endswith("log_softmax"))
    assert loss.inputs[0].dtype.bytes == 4
    turned_back = next(op for op in trace.ops if "rotary" in op.name and op.is_gradient)
    assert {t.name for t in turned_back.inputs[1:]} == {"model.cos", "model.sin"}


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("decoder:layers=2", "hidden, heads, vocab"),
        ("decoder:layers", "layers=32"),
        ("decoder:layers=2,hidden=64,heads=8,vocab=50,ffm=3", "ffn"),
        ("decoder:layers=2,hidden=64,heads=7,vocab=50", "divide"),
        ("decoder:layers=two,hidden=64,heads=8,vocab=50", "whole number"),
        ("decoder:layers=0,hidden=64,heads=8,vocab=50", "layers"),
        ("decoder:layers=2,hidden=64,heads=8,vocab=50,style=t5", "llama"),
        ("decoder:layers=2,hidden=64,heads=8,vocab=50,window=-4", "window must be between 0"),
        ("decoder:layers=2,hidden=64,heads=8,vocab=50,global_every=6", "give a window"),
        ("decoder:layers=2,hidden=64,heads=8,vocab=50,style=handwritten,window=4", "leave window out"),
    ],
)
def test_refusals(reference: str, said: str) -> None:
    with pytest.raises(EpochcastError, match=said) as refused:
        find_model(reference)
    assert "\n" not in str(refused.value)


def test_all_but_the_last_of_every_three_layers_look_at_a_window() -> None:
    """A query of 4 heads of 16 multiplies 8 keys instead of 64, forward 2 · 2 flops for each value; nothing else
    changes, and scores are in memory neither way.
    """
    references = [f"decoder:layers=6,hidden=64,heads=4,vocab=100{more}" for more in (",window=8,global_every=3", "")]
    near, far = (find_model(reference, (64,)).trace(Recipe(2)) for reference in references)
    windows = [op.kind.window for op in near.ops if isinstance(op.kind, Attention) and not op.is_gradient]
    assert windows == [8, 8, 0, 8, 8, 0]
    assert far.flops["forward"] - near.flops["forward"] == 4 * (2 * 2 * 2 * 4 * 16 * 64 * (64 - 8))
    assert peak_memory(near).allocated_bytes == peak_memory(far).allocated_bytes


def test_the_products_of_experts_run_as_linear_layers_do() -> None:
    """8 experts, 2 of them for each of 64 tokens: 16 rows for each expert, three products of each, forward and back."""
    graph = sized_decoder("layers=1,hidden=32,heads=2,vocab=100,ffn=48,experts=8,chosen=2", (64,)).graph(1)
    step = step_ops(graph, Recipe(1, mode="forward_backward"))
    products = [op for op in step if isinstance(op.kind, Matmul) and op.kind.grouped]
    assert len(products) == 3 * 2  # both halves of the gate are one product
    assert {op.op_class for op in products} == {OpClass.LINEAR}
    assert {op.work.repeats for op in products} == {8}
    assert {op.work.flops for op in products} == {2 * 8 * 16 * 32 * 96, 2 * 8 * 16 * 48 * 32}


def test_a_handwritten_decoder_runs_a_kernel_per_step_of_its_formulas() -> None:
    """A layer of CS336's model, forward: 7 products with weights and 2 without; two norms of 6; rotations of 7 for
    queries and keys; 3 copies, scale, mask (2), softmax (5) and a copy in attention; 3 for the gate; 2 residuals.
    """
    sizes = "hidden=32,heads=2,vocab=100,style=handwritten"
    one, two = (
        sized_decoder(f"layers={layers},{sizes}", (16,)).trace(Recipe(1, mode="forward")).columns.launches.sum()
        for layers in (1, 2)
    )
    assert two - one == 9 + 2 * 6 + 2 * 7 + (3 + 1 + 2 + 5 + 1) + 3 + 2
    fused = sized_decoder("layers=2,hidden=32,heads=2,vocab=100", (16,)).trace(Recipe(1, mode="forward"))
    assert two > 2 * fused.columns.launches.sum()
    assert sized_decoder(f"layers=1,{sizes}").host_class is None


def test_a_handwritten_decoder_has_no_experts() -> None:
    with pytest.raises(EpochcastError, match="style=handwritten has a gate, no experts"):
        sized_decoder("layers=1,hidden=32,heads=2,vocab=100,style=handwritten,experts=4")


def test_a_compiler_takes_more_from_a_handwritten_decoder_than_from_a_fused_one() -> None:
    """13 pairs of CS336's runs (A800, B200): 0.99 to 1.25 times faster; a graph of fused kernels said 1.00 to 1.03."""
    sizes, recipe = "layers=2,hidden=256,heads=4,vocab=1000", Recipe(4)
    moved_bytes = {
        style: [
            sized_decoder(f"{sizes},style={style}", (128,)).trace(replace(recipe, compile=name)).columns.bytes.sum()
            for name in ("none", "inductor")
        ]
        for style in ("handwritten", "llama")
    }
    (eager, compiled), (fused_eager, fused_compiled) = moved_bytes["handwritten"], moved_bytes["llama"]
    assert compiled < 0.7 * eager
    assert fused_compiled > 0.8 * fused_eager
