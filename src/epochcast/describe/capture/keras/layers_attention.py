"""Attention layers: multi-head and grouped-query with their projections, Luong's and Bahdanau's without."""

from collections.abc import Sequence
from math import prod

from epochcast.describe.capture.keras.keras_call import KerasCall, KerasTensor, plain
from epochcast.describe.graph.op_kinds import Attention, Elementwise, Matmul, Reduce, Softmax
from epochcast.describe.graph.tensor import Tensor


def _projected(call: KerasCall, name: str, x: Tensor, heads: int, width: int) -> Tensor:
    weights = [call.weight(f"{name}_kernel", (heads * width, x.shape[-1]))]
    if call.flag("use_bias", True):
        weights.append(call.weight(f"{name}_bias", (heads * width,)))
    y = call.op(Matmul(transpose_b=True), [x], [(*x.shape[:-1], heads * width)], weights)[0]
    rows = prod(x.shape[1:-1])
    return call.reshaped(plain(y), (x.shape[0], heads, rows, width), "transpose").tensor


def _out(call: KerasCall, mixed: Tensor, query: Tensor, features: Sequence[int]) -> KerasTensor:
    joined = call.reshaped(plain(mixed), (*query.shape[:-1], mixed.shape[1] * mixed.shape[-1]), "transpose").tensor
    size = prod(features)
    weights = [call.weight("output_kernel", (size, joined.shape[-1]))]
    if call.flag("use_bias", True):
        weights.append(call.weight("output_bias", (size,)))
    y = call.op(Matmul(transpose_b=True), [joined], [(*joined.shape[:-1], size)], weights)[0]
    return plain(y) if len(features) == 1 else call.reshaped(plain(y), (*joined.shape[:-1], *features))


def _sources(call: KerasCall) -> tuple[Tensor, Tensor, Tensor]:
    """query, value, key in Keras' order of arguments; a missing key is the value."""
    query = call.values[0].plain
    value = call.values[1].plain if len(call.values) > 1 else query
    key = call.values[2].plain if len(call.values) > 2 and call.values[2].tensor.dtype.is_float else value
    return query, value, key


def multi_head(call: KerasCall) -> Sequence[KerasTensor]:
    """num_heads of key_dim (value_dim for values), a projection for each and one behind."""
    query, value, key = _sources(call)
    heads, width = call.count("num_heads"), call.count("key_dim")
    value_width = int(call.option("value_dim", width))
    q = _projected(call, "query", query, heads, width)
    k = _projected(call, "key", key, heads, width)
    v = _projected(call, "value", value, heads, value_width)
    return _mixed(call, query, q, k, v)


def grouped_query(call: KerasCall) -> Sequence[KerasTensor]:
    """Many query heads over few key and value heads."""
    query, value, key = _sources(call)
    heads, kv_heads, width = call.count("num_query_heads"), call.count("num_key_value_heads"), call.count("head_dim")
    q = _projected(call, "query", query, heads, width)
    k = _projected(call, "key", key, kv_heads, width)
    v = _projected(call, "value", value, kv_heads, width)
    return _mixed(call, query, q, k, v)


def _mixed(call: KerasCall, query: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Sequence[KerasTensor]:
    causal = bool(call.arguments.get("use_causal_mask"))
    kind = Attention(causal, dropout=float(call.option("dropout", 0.0) or 0.0) > 0)
    mixed = call.op(kind, [q, k, v], [(*q.shape[:-1], v.shape[-1])])[0]
    output_shape = call.option("output_shape")
    features = tuple(output_shape) if isinstance(output_shape, list | tuple) else (output_shape or query.shape[-1],)
    result = _out(call, mixed, query, features)
    if not call.arguments.get("return_attention_scores"):
        return [result]
    scores = call.op(Softmax(), [q, k], [(*q.shape[:-1], k.shape[-2])])[0]
    return [result, plain(scores)]


def luong(call: KerasCall) -> KerasTensor:
    """softmax(q·kᵀ)·v; `use_scale` learns one factor, score_mode "concat" one more."""
    query, value, key = _sources(call)
    if call.flag("use_scale", False):
        call.weight("scale", ())
    if call.option("score_mode", "dot") == "concat":
        call.weight("concat_score_weight", ())
    heads = [call.reshaped(plain(t), (t.shape[0], 1, *t.shape[1:])).tensor for t in (query, key, value)]
    shape = (*query.shape[:-1], value.shape[-1])
    mixed = call.op(Attention(), heads, [(shape[0], 1, *shape[1:])])[0]
    return call.reshaped(plain(mixed), shape)


def bahdanau(call: KerasCall) -> KerasTensor:
    """softmax(Σ tanh(q + k))·v; `use_scale` learns one factor per feature."""
    query, value, key = _sources(call)
    n, rows, width = query.shape
    columns = key.shape[1]
    weights = [call.weight("scale", (width,))] if call.flag("use_scale", True) else []
    joined = call.op(Elementwise("tanh"), [query, key], [(n, rows, columns, width)], weights)[0]
    scores = call.op(Reduce("sum"), [joined], [(n, rows, columns)])[0]
    soft = call.op(Softmax(), [scores], [scores.shape])[0]
    return plain(call.op(Matmul(), [soft, value], [(n, rows, value.shape[-1])])[0])
