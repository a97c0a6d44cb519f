"""Mixtures of experts: each token goes to one of several feed-forward layers (Switch, Fedus et al. 2022).

Which expert a token takes depends on the data, so the sizes here assume balanced routing: every expert gets T/E
tokens of a sequence, at most its capacity; what is over goes by on the residual connection, as in Hugging Face's
router.
"""

from math import ceil

from epochcast.graph.build import Builder
from epochcast.graph.kinds import Copy, Elementwise, Gather, Reduce, Scatter
from epochcast.graph.tensor import DType, Tensor


def switch_layer(b: Builder, x: Tensor, experts: int, ffn: int, capacity: int) -> Tensor:
    """p(e|token) · expertₑ(token) for the one expert e chosen: a router, then gather, two products, scatter each."""
    batch, length, width = x.shape
    chosen, probability = _routed(b, x, experts)
    rows = batch * min(capacity, ceil(length / experts))
    flat = b.view(x, (batch * length, width))
    weight = b.view(probability, (batch * length, 1))
    total = b.op(Copy("fill"), [], [flat.shape], name="experts")[0]
    for index in range(experts):
        with b.scope(f"experts.expert_{index}"):
            places = b.op(Reduce("nonzero"), [chosen], [(rows,)], dtypes=[DType.INT64], name="tokens")[0]
            y = b.op(Gather(), [flat, places], [(rows, width)], name="tokens")[0]
            y = b.dropout(b.relu(b.linear(y, ffn, bias=False, name="wi")))
            y = b.linear(y, width, bias=False, name="wo")
            share = b.op(Gather(), [weight, places], [(rows, 1)], name="probability")[0]
            y = b.mul(y, share, name="weighted")
            total = b.op(Scatter("add"), [y, places, total], [flat.shape], name="combine")[0]
    return b.view(total, x.shape)


def _routed(b: Builder, x: Tensor, experts: int) -> tuple[Tensor, Tensor]:
    """The (N, T, E) one-hot choice with what is over capacity masked out, and the probability of the choice."""
    with b.scope("router"):
        noise = b.op(Elementwise("uniform"), [], [x.shape], name="jitter")[0]
        logits = b.linear(b.mul(x, noise, name="jitter"), experts, bias=False, name="classifier")
        odds = b.softmax(logits)
        place = b.op(Reduce("argmax"), [odds], [odds.shape[:-1]], dtypes=[DType.INT64], name="choice")[0]
        integers = [DType.INT64]
        choice = b.op(Scatter("one_hot"), [place], [odds.shape], dtypes=integers, name="choice")[0]
        order = b.op(Reduce("cumsum"), [choice], [odds.shape], dtypes=integers, name="priority")[0]
        fits = b.op(Elementwise("le"), [order], [odds.shape], dtypes=[DType.BOOL], name="priority")[0]
        choice = b.op(Elementwise("mul"), [choice, fits], [odds.shape], dtypes=integers, name="choice")[0]
        best = b.reduce("max", odds, [-1], keep=True)
    return choice, best
