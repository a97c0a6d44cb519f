"""Masks of padded batches and of windows, worked out by hand."""

from functools import partial

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.capture.zoo.decoder import decoder
from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_kinds import Attention
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import DType
from epochcast.describe.graph.trace import Trace, trace_from
from epochcast.predict.memory.peak import peak_memory

GPT2 = zoo_model("gpt2", (128,))


def trace(*, is_padded: bool, attention: str = "sdpa") -> Trace:
    return GPT2.trace(Recipe(4, "sgd", "bf16", padding_mask=is_padded, attention=attention))


def test_each_layer_keeps_a_bias_and_all_share_one_mask() -> None:
    """4 samples, 128 x 128 scores: a byte each in the mask, two in the bias of each of twelve layers."""
    plain, padded = (
        peak_memory(trace(is_padded=each)).timeline.live_bytes["activations"].max() for each in (False, True)
    )
    assert padded - plain == 12 * 2 * 4 * 128 * 128
    masks = {t.name: t for op in trace(is_padded=True).ops for t in op.inputs if t.dtype is DType.BOOL}
    assert [t.bytes for t in masks.values() if t.name.startswith("attention_mask")] == [4 * 128 * 128]


def test_flash_and_eager_attention_have_no_such_mask() -> None:
    for attention in ("flash", "eager"):
        assert trace(is_padded=True, attention=attention).ops == trace(is_padded=False, attention=attention).ops


def windowed(attention: str, *, window: int = 8, is_padded: bool = False) -> Trace:
    """Two layers over 32 tokens, the first with a window: 3 samples, 4 heads of 4 with 2 keys and values."""
    tiny = partial(decoder, name="tiny", layers=2, width=16, heads=4, kv_heads=2, ffn=32, vocabulary=100)
    graph = partial(tiny, input_shape=(32,), window=window, global_every=2)
    return trace_from(graph, Recipe(3, "sgd", "bf16", attention=attention, padding_mask=is_padded))


def attentions(trace: Trace) -> list[Op]:
    return [op for op in trace.ops if isinstance(op.kind, Attention) and op.phase is Phase.FORWARD]


def test_a_window_is_a_mask_for_pytorchs_own_attention_and_skipped_by_flash_attention() -> None:
    """QKᵀ and PV: 2 · 2 · 3 · 4 · 32 queries · 4 wide, times all 32 keys or the 8 of the window."""
    each = 2 * 2 * 3 * 4 * 32 * 4
    local, whole = attentions(windowed("sdpa"))
    assert (local.work.flops, whole.work.flops) == (each * 32, each * 32)
    assert [t.shape for t in local.inputs] == [(3, 4, 32, 4)] * 3 + [(3, 1, 32, 32)]
    assert len(whole.inputs) == 3
    local, whole = attentions(windowed("flash"))
    assert (local.work.flops, whole.work.flops) == (each * 8, each * 32)
    assert [t.shape for t in local.inputs] == [(3, 4, 32, 4), (3, 2, 32, 4), (3, 2, 32, 4)]


def test_the_mask_of_a_window_costs_a_bias_a_layer_and_keys_and_values_for_every_head() -> None:
    """In bf16: a bias of 3 x 32 x 32, and keys and values of 4 heads instead of 2. One mask has no samples."""
    masked, skipped = (
        peak_memory(windowed(attention)).timeline.live_bytes["activations"].max() for attention in ("sdpa", "flash")
    )
    assert masked - skipped == 2 * 3 * 32 * 32 + 2 * (2 * 3 * 2 * 32 * 4)
    assert {t.shape for op in windowed("sdpa").ops for t in op.outputs if t.dtype is DType.BOOL} == {(1, 1, 32, 32)}


def test_a_window_as_long_as_the_text_hides_nothing() -> None:
    assert all(len(op.inputs) == 3 for op in attentions(windowed("sdpa", window=32)))


def test_padded_batches_have_a_mask_with_and_one_without_the_window() -> None:
    masks = {t.name: t for op in windowed("sdpa", is_padded=True).ops for t in op.outputs if t.dtype is DType.BOOL}
    assert [t.shape for t in masks.values()] == [(3, 1, 32, 32)] * 2


def test_scores_that_are_written_out_are_as_many_with_a_window() -> None:
    """Eager attention masks what it has computed."""
    near, far = (windowed("eager", window=window) for window in (8, 0))
    assert near.flops == far.flops
    assert peak_memory(near).allocated_bytes == peak_memory(far).allocated_bytes
