from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import DType
from epochcast.describe.graph.trace import Trace
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
