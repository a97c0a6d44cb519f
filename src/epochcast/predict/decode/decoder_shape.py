"""What a decoder runs for one generated token, read from the forward graph of its training step.

An inference engine runs the products of a layer that read one tensor as one kernel (query, key and value; gate and up),
keeps the keys and values of every attention, and scores the vocabulary for one position of each sequence. Everything
between products is fused into a few small kernels, which `decode_rates` times per layer.

A graph of T tokens gives, per token: products (k, n) with their weights, attentions with their heads. With E experts
of which a router picks r, a product of experts has E weights and r·n·k multiplications per token.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

from epochcast.base.caching import remembered
from epochcast.describe.graph.language_model import head_weights, is_head, vocabulary_size
from epochcast.describe.graph.op import Graph, Op
from epochcast.describe.graph.op_kinds import Attention, Conv, Copy, Matmul, Opaque, Recurrent, View
from epochcast.errors import BadInput


class NotGenerating(BadInput):
    """A network that does not generate text token by token, or does it in a way nobody timed."""

    def __init__(self, model: str, why: str) -> None:
        super().__init__(f"{model} {why}: --mode generate takes decoders, such as llama3_8b or qwen3_30b_a3b")
        self.model = model
        self.why = why


@dataclass(frozen=True, slots=True)
class DecodeProduct:
    """`count` products of k inputs and n outputs per token; with `experts`, `chosen` of them work on a token."""

    count: int
    k: int
    n: int
    experts: int = 1
    chosen: float = 1.0
    is_head: bool = False

    @property
    def weights(self) -> int:
        """Values of all of them."""
        return self.count * self.experts * self.k * self.n

    @property
    def flops_per_token(self) -> float:
        """2 · n · k of each expert that works on the token."""
        return 2.0 * self.count * self.chosen * self.k * self.n

    def read_fraction(self, tokens: float) -> float:
        """1 - (1 - r/E)^m: the part of the experts that m tokens reach, drawn evenly."""
        if self.experts == 1:
            return 1.0
        return float(1.0 - (1.0 - min(1.0, self.chosen / self.experts)) ** max(tokens, 0.0))


@dataclass(frozen=True, slots=True)
class DecodeAttention:
    """`count` attentions of one shape; `window` is the farthest key they read, 0 for all."""

    count: int
    heads: int
    kv_heads: int
    head_dim: int
    window: int = 0

    @property
    def cached_values_per_token(self) -> int:
        """Key and value of every key head."""
        return 2 * self.count * self.kv_heads * self.head_dim

    def read_tokens(self, context: float) -> float:
        """Keys that one query reads."""
        return min(context, self.window) if self.window else context


@dataclass(frozen=True, slots=True)
class DecoderShape:
    """A decoder as an inference engine runs it. `parameters` are all its values, `layers` its attentions."""

    model: str
    parameters: int
    hidden: int
    products: tuple[DecodeProduct, ...]
    attentions: tuple[DecodeAttention, ...]

    @property
    def layers(self) -> int:
        """Blocks: one attention each."""
        return sum(each.count for each in self.attentions)

    @property
    def kernels(self) -> int:
        """Products and attentions of one token."""
        return self.layers + sum(each.count for each in self.products)

    @property
    def layer_weights(self) -> int:
        """Values in the products of the layers, which quantised formats store in fewer bits; the head stays."""
        return sum(each.weights for each in self.products if not each.is_head)

    @property
    def flops_per_token(self) -> float:
        """Multiplications and additions of products for one token, the head left out."""
        return sum(each.flops_per_token for each in self.products if not each.is_head)

    @property
    def cached_values_per_token(self) -> int:
        """Keys and values of a token in all layers, before windows."""
        return sum(each.cached_values_per_token for each in self.attentions)


@remembered(32)
def decoder_shape(graph: Graph) -> DecoderShape:
    """The decoder of a forward graph of one sample; raises `NotGenerating` for other networks."""
    if vocabulary_size(graph) is None:
        raise NotGenerating(graph.name, "scores no vocabulary")
    strange = next((op for op in graph.ops if isinstance(op.kind, Conv | Recurrent | Opaque)), None)
    if strange is not None:
        raise NotGenerating(
            graph.name, f"has {strange.kind.label} layers, whose state while generating is not modelled"
        )
    tokens = graph.inputs[0].shape[-1]
    attentions = _attentions(graph)
    products = _products(graph, tokens)
    head = next((each for each in products if each.is_head), None)
    if head is None:
        raise NotGenerating(graph.name, "has no head that scores the vocabulary")
    return DecoderShape(graph.name, graph.parameter_count, head.k, products, attentions)


def _attentions(graph: Graph) -> tuple[DecodeAttention, ...]:
    """Attentions of one shape together, in the order of the network."""
    counted: dict[DecodeAttention, int] = {}
    producer = {t.name: op for op in graph.ops for t in op.outputs}
    for op in graph.ops:
        if not isinstance(op.kind, Attention):
            continue
        if not op.kind.causal:
            raise NotGenerating(graph.name, "attends to later tokens")
        query, key, value = op.inputs[:3]
        if key.shape[-1] != value.shape[-1]:
            raise NotGenerating(graph.name, "keeps a latent instead of keys and values (multi-head latent attention)")
        shape = DecodeAttention(
            1, query.shape[1], _kv_heads(op, producer, query.shape[1]), query.shape[-1], op.kind.window
        )
        counted[shape] = counted.get(shape, 0) + 1
    if not counted:
        raise NotGenerating(graph.name, "has no fused causal attention (give attention='flash')")
    return tuple(replace(shape, count=count) for shape, count in counted.items())


def _kv_heads(attention: Op, producer: dict[str, Op], heads: int) -> int:
    """Heads of the key, before a capture repeats them for every query head: the width of the product that makes it."""
    key = attention.inputs[1]
    if key.shape[1] < heads:
        return key.shape[1]
    product = _product_behind(key.name, producer)
    width = product.weights[0].shape[0] if product is not None else 0
    each = key.shape[-1]
    return width // each if width and width % each == 0 and heads % (width // each) == 0 else key.shape[1]


def _product_behind(name: str, producer: dict[str, Op]) -> Op | None:
    """The product with a weight that a tensor comes from, through the ops on its elements."""
    seen, names = set[str](), [name]
    while names:
        op = producer.get(names.pop())
        if op is None or op.name in seen:
            continue
        seen.add(op.name)
        if isinstance(op.kind, Matmul) and op.weights:
            return op
        names += [t.name for t in op.inputs]
    return None


def _products(graph: Graph, tokens: int) -> tuple[DecodeProduct, ...]:
    """Products that read one tensor as one, and those of one shape together."""
    heads = head_weights(graph.ops)
    source = {
        t.name: op.inputs[0].name
        for op in graph.ops
        if isinstance(op.kind, View | Copy)
        for t in op.outputs
        if op.inputs
    }
    together: dict[tuple[str, bool, int], list[Op]] = {}
    for op in graph.ops:
        if isinstance(op.kind, Matmul) and op.weights and len(op.weights[0].shape) >= 2:
            read = _root(op.inputs[0].name, source)
            together.setdefault((read, is_head(op, heads), _experts(op)), []).append(op)
    counted: dict[DecodeProduct, int] = {}
    for (_, is_last, _), ops in together.items():
        product = _joined(ops, tokens, is_last)
        counted[product] = counted.get(product, 0) + 1
    return tuple(replace(product, count=count) for product, count in counted.items())


def _root(name: str, source: dict[str, str]) -> str:
    while name in source:
        name = source[name]
    return name


def _experts(op: Op) -> int:
    """Weights of a product of experts; 1 of any other."""
    shape = op.weights[0].shape
    return prod(shape[:-2]) if len(shape) > 2 else 1


def _joined(ops: Sequence[Op], tokens: int, is_last: bool) -> DecodeProduct:
    """One product for several that read the same tensor."""
    first = ops[0]
    k = _width(first)
    experts = _experts(first)
    rows = prod(first.inputs[0].shape[:-1])
    chosen = rows / tokens if experts > 1 else 1.0
    return DecodeProduct(1, k, sum(_outputs(ops)), experts, chosen, is_last)


def _width(op: Op) -> int:
    return op.inputs[0].shape[-1]


def _outputs(ops: Iterable[Op]) -> Iterable[int]:
    """Columns of each: the values of one weight by its inputs."""
    for op in ops:
        yield prod(op.weights[0].shape[-2:]) // _width(op)
