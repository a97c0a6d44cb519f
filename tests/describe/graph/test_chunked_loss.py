import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.op_kinds import Loss
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.predict.memory.lifetimes import lifetimes
from epochcast.predict.memory.peak import peak_memory

TINY = zoo_model("tinyllama_1_1b", (512,))
SCORES = 2 * 512 * 32_000
"""Of a batch of two."""


def trace(chunks: int, precision: str = "bf16") -> Trace:
    return TINY.trace(Recipe(2, optimizer="sgd", precision=precision, checkpointing=True, loss_chunks=chunks))


def most_of_loss(step: Trace) -> int:
    """Live bytes of what only head and loss make, at most."""
    whole = peak_memory(step).timeline
    at_loss = [place for place, name in enumerate(whole.names) if "log_softmax" in name]
    return int(max(whole.live_bytes["temporaries"][place] for place in at_loss))


def test_a_chunk_holds_an_eighth_of_the_scores() -> None:
    """At most three copies in float32 of the scores: log-softmax, its gradient, the gradient of what it read. The first
    is saved where the loss is not chunked, a temporary where it is; the head's gradients of 512 tokens are beside.
    """
    assert most_of_loss(trace(1)) == 2 * 4 * SCORES
    beside = 2 * 2 * 512 * 2048
    assert most_of_loss(trace(8)) <= 3 * 4 * SCORES // 8 + beside + 4
    assert most_of_loss(trace(8)) >= 3 * 4 * SCORES // 8


def test_chunks_do_the_same_work() -> None:
    whole, chunked = trace(1), trace(8)
    assert sum(chunked.flops.values()) == pytest.approx(sum(whole.flops.values()), rel=1e-3)
    assert sum(isinstance(op.kind, Loss) and not op.is_gradient for op in chunked.ops) == 8


@pytest.mark.parametrize("precision", ["fp32", "bf16", "amp_bf16", "bf16_master", "amp_bf16_half"])
def test_what_the_head_hands_back_is_whole(precision: str) -> None:
    """Both samples' 512 tokens, 2048 values each."""
    step = trace(8, precision)
    lives = lifetimes(step)
    sizes = dict(zip(lives.names, lives.bytes_at(2).tolist(), strict=True))
    wanted = {t.name for op in trace(1, precision).ops if op.name == "lm_head/out.data" for t in op.outputs}
    assert wanted and all(sizes[name] in (2 * 512 * 2048 * 2, 2 * 512 * 2048 * 4) for name in wanted & sizes.keys())


def test_chunks_grow_with_the_batch() -> None:
    """512 tokens do not divide by seven: a chunk has 74 of every sample."""
    small, large = (TINY.trace(Recipe(batch, "sgd", "bf16", loss_chunks=7)).ops for batch in (2, 6))
    shapes = [next(op for op in ops if op.name == "lm_head/out#3").output.shape for ops in (small, large)]
    assert shapes == [(2, 74, 32_000), (6, 74, 32_000)]


def test_a_network_without_a_vocabulary_is_refused() -> None:
    with pytest.raises(BadInput, match="its loss cannot be chunked"):
        zoo_model("resnet18").trace(Recipe(2, mode="forward_backward", with_loss=False, loss_chunks=2))
