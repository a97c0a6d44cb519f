"""Mixtures of experts: each token goes to some of many feed-forward layers (Shazeer et al. 2017).

Which experts a token takes depends on the data, so the sizes here assume balanced routing: of a sequence of T tokens
every one of E experts gets ⌈T·k/E⌉, where a token takes k.

`switch_layer` is Fedus et al. 2022 as Hugging Face runs it: k = 1, one expert after another, at most a capacity of
tokens each; what is over goes by on the residual connection. `mixture_layer` is how mixtures are trained today: tokens
are sorted by expert and every product of all experts is one kernel. It follows from its ops:

    Gather("dispatch")     tokens in the order of their experts, (E, tokens of one, width); backward Scatter("dispatch")
    Matmul                 with a weight of three dimensions, the first one E; gradients the same
    Scatter("combine")     the experts' results back to their tokens; backward Gather("combine")

`is_looped`: as Hugging Face's transformers ran them before version 5 had grouped products (`GraniteMoeMoE`,
`JetMoeParallelExperts`). The host reads how many tokens each expert has, and Python starts one product per expert, with
a slice of one stack of weights (`JoinedSlices`).
"""

from dataclasses import dataclass
from math import ceil

from epochcast.describe.capture.zoo.attention_layers import gated
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op_kinds import Copy, Elementwise, Gather, HostLoop, JoinedSlices, Matmul, Reduce, Scatter
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.errors import BadInput


@dataclass(frozen=True, slots=True)
class Mixture:
    """`chosen` of `experts` gated layers of `ffn` for every token, and one of `shared` that all tokens pass.

    `scores` is what makes probabilities of the router's logits (softmax, sigmoid). `is_clamped`: the gate of gpt-oss,
    with biases everywhere and a router of its own name. `is_looped`: one product per expert instead of a grouped one.
    """

    experts: int
    chosen: int
    ffn: int
    shared: int = 0
    scores: str = "softmax"
    is_clamped: bool = False
    is_looped: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.chosen <= self.experts:
            raise BadInput(f"a token takes between 1 and {self.experts} experts, not {self.chosen}")


def mixture_layer(b: Builder, x: Tensor, mixture: Mixture) -> Tensor:
    """Σ p(e|token) · expertₑ(token) over the experts e chosen: a router, dispatch, two products, combine."""
    batch, length, _ = x.shape
    with b.scope("mlp"):
        probabilities, indices = _chosen(b, x, mixture)
        rows = batch * ceil(length * mixture.chosen / mixture.experts)
        layer = _looped if mixture.is_looped else _grouped
        with b.scope("experts"):
            y = layer(b, x, mixture, probabilities, indices, rows)
        return b.add(y, gated(b, x, mixture.shared, name="shared_experts")) if mixture.shared else y


def _grouped(b: Builder, x: Tensor, mixture: Mixture, probabilities: Tensor, indices: Tensor, rows: int) -> Tensor:
    """All experts at once, each with `rows` tokens."""
    shape, width = (mixture.experts, rows), x.shape[-1]
    flat = b.view(x, (x.elements // width, width))
    places = b.op(Reduce("sort"), [indices], [shape], dtypes=[DType.INT64], name="places")[0]
    y = b.op(Gather("dispatch"), [flat, places], [(*shape, width)], name="dispatch")[0]
    both = _experts_product(b, y, 2 * mixture.ffn, mixture, "gate_up_proj")
    gate, up = b.split(both, 2)
    y = _clamped(b, gate, up) if mixture.is_clamped else b.mul(b.elementwise("silu", gate, name="act_fn"), up)
    y = _experts_product(b, y, width, mixture, "down_proj")
    share = b.op(Gather(), [probabilities, places], [(*shape, 1)], name="probability")[0]
    y = b.mul(y, share, name="weighted")
    return b.view(b.op(Scatter("combine"), [y, places], [flat.shape], name="combine")[0], x.shape)


def _looped(b: Builder, x: Tensor, mixture: Mixture, probabilities: Tensor, indices: Tensor, rows: int) -> Tensor:
    """The experts one after another, each with `rows` tokens."""
    experts, width, total = mixture.experts, x.shape[-1], mixture.experts * rows
    flat = b.view(x, (x.elements // width, width))
    # zeros, scatter, cast, sum and a copy to the host: how many tokens each expert has
    b.op(HostLoop(once=5), [indices], [(experts,)], dtypes=[DType.INT64], name="sizes")
    places = b.op(Reduce("sort"), [indices], [(total,)], dtypes=[DType.INT64], name="places")[0]
    y = b.op(Gather("dispatch"), [flat, places], [(total, width)], name="dispatch")[0]
    gate, up = b.split(_one_by_one(b, y, 2 * mixture.ffn, experts, "input_linear"), 2)
    y = b.mul(b.elementwise("silu", gate, name="act_fn"), up)
    y = _one_by_one(b, y, width, experts, "output_linear")
    share = b.op(Gather(), [probabilities, places], [(total, 1)], name="probability")[0]
    y = b.mul(y, share, name="weighted")
    return b.view(b.op(Scatter("combine"), [y, places], [flat.shape], name="combine")[0], x.shape)


def _one_by_one(b: Builder, x: Tensor, features: int, experts: int, name: str) -> Tensor:
    """A product per expert with its own rows of `x`, and the results as one tensor."""
    with b.scope(name):
        pieces = b.split(x, experts, axis=0)
        results = [b.linear(piece, features, bias=False, name=str(i)) for i, piece in enumerate(pieces)]
        weight = b.parameter("0.weight", (features, x.shape[-1]))
        return b.op(JoinedSlices(experts), results, [(x.shape[0], features)], weights=[weight], name="joined")[0]


def _chosen(b: Builder, x: Tensor, mixture: Mixture) -> tuple[Tensor, Tensor]:
    """(N, T, k): the probabilities of the chosen experts, scaled to a sum of one, and which they are."""
    router = "router" if mixture.is_clamped else "gate"
    logits = b.linear(x, mixture.experts, bias=mixture.is_clamped, name=router)
    with b.scope(router):
        odds = b.softmax(logits) if mixture.scores == "softmax" else b.elementwise(mixture.scores, logits)
        shape = (*x.shape[:-1], mixture.chosen)
        best, which = b.op(Reduce("topk"), [odds], [shape, shape], dtypes=[odds.dtype, DType.INT64], name="topk")
        return b.elementwise("div", best, b.reduce("sum", best, [-1], keep=True)), which


def _experts_product(b: Builder, x: Tensor, features: int, mixture: Mixture, name: str) -> Tensor:
    """(E, R, K)·(E, N, K)ᵀ in one kernel, every expert with its own weight."""
    experts, rows, width = x.shape
    weights = [b.parameter(name, (experts, features, width))]
    if mixture.is_clamped:
        weights.append(b.parameter(f"{name}_bias", (experts, features)))
    kind = Matmul(transpose_b=True, grouped=True)
    return b.op(kind, [x], [(experts, rows, features)], weights=weights, name=name)[0]


def _clamped(b: Builder, gate: Tensor, up: Tensor) -> Tensor:
    """(min(max(u, −7), 7) + 1) · g·σ(1.702·g) with g at most 7 (gpt-oss), a kernel per sign."""
    with b.scope("act_fn"):
        gate, up = b.elementwise("clamp", gate), b.elementwise("clamp", up)
        glu = b.mul(gate, b.elementwise("sigmoid", b.elementwise("scale", gate)))
        return b.mul(b.elementwise("add", up), glu)


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
