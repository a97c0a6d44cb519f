"""Llama-style decoders by configuration.

Touvron et al. 2023 (Llama 2), Jiang et al. 2023 (Mistral), Zhang et al. 2024 (TinyLlama). Root-mean-square norms in
front, rotary positions (Su et al. 2021), a gated feed-forward layer silu(xW₁) · xW₂ (Shazeer 2020), fewer key and
value heads than query heads (Ainslie et al. 2023), no biases, no dropout. Names and layers are Hugging Face's
`LlamaForCausalLM`. A sliding window (Mistral) is not subtracted: within its 4,096 tokens it changes nothing.
"""

from epochcast.capture.zoo.attention import join_heads, rms_norm, sequence_length, split_heads, token_ids
from epochcast.errors import BadInput
from epochcast.graph.build import Builder
from epochcast.graph.op import Graph
from epochcast.graph.tensor import Tensor


def decoder(
    batch: int,
    input_shape: tuple[int, ...] | None = None,
    *,
    name: str,
    layers: int,
    width: int,
    heads: int,
    ffn: int,
    vocabulary: int,
    kv_heads: int | None = None,
    head_width: int | None = None,
    context: int = 4096,
    tied: bool = False,
    qkv_bias: bool = False,
) -> Graph:
    """Any such decoder; `kv_heads` defaults to `heads`, `tied` shares the output with the token embeddings.

    >>> decoder(1, (8,), name="tiny", layers=1, width=16, heads=4, kv_heads=2, ffn=32, vocabulary=100).parameter_count
    5552
    """
    groups = heads if kv_heads is None else kv_heads
    if heads % groups:
        raise BadInput(f"{name}: {groups} key-value heads do not divide {heads} heads")
    each = width // heads if head_width is None else head_width
    length = sequence_length(name, input_shape, context)
    b = Builder(name, batch)
    with b.scope("model"):
        x = b.embedding(token_ids(b, length), vocabulary, width, name="embed_tokens")
        with b.scope("rotary_emb"):
            cos, sin = _rotations(b, length, each)
        for index in range(layers):
            with b.scope(f"layers.{index}"):
                y = rms_norm(b, x, name="input_layernorm")
                x = b.add(x, _attention(b, y, heads, groups, each, cos, sin, qkv_bias))
                x = b.add(x, _gated(b, rms_norm(b, x, name="post_attention_layernorm"), ffn))
        x = rms_norm(b, x, name="norm")
    table = b.parameters["model.embed_tokens.weight"].tensor if tied else None
    logits = b.linear(x, vocabulary, bias=False, weight=table, name="lm_head")
    return b.finish(logits, units_per_sample=length)


def _rotations(b: Builder, length: int, width: int) -> tuple[Tensor, Tensor]:
    """cos and sin of position times frequency, computed once a step."""
    angles = b.elementwise("mul", b.constant("frequencies", (1, length, width // 2)))
    both = b.concatenate([angles, angles], -1)
    cos, sin = (b.elementwise("scale", b.elementwise(function, both)) for function in ("cos", "sin"))
    shape = (1, 1, length, width)
    return b.view(cos, shape, "unsqueeze"), b.view(sin, shape, "unsqueeze")


def _rotated(b: Builder, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x·cos + (−x₂, x₁)·sin over the two halves of every head."""
    first, second = b.split(x, 2)
    turned = b.concatenate([b.elementwise("neg", second), first], -1)
    return b.add(b.mul(x, cos), b.mul(turned, sin))


def _attention(
    b: Builder, x: Tensor, heads: int, groups: int, each: int, cos: Tensor, sin: Tensor, bias: bool
) -> Tensor:
    with b.scope("self_attn"):
        q = split_heads(b, b.linear(x, heads * each, bias=bias, name="q_proj"), heads)
        k = split_heads(b, b.linear(x, groups * each, bias=bias, name="k_proj"), groups)
        v = split_heads(b, b.linear(x, groups * each, bias=bias, name="v_proj"), groups)
        y = b.attention(_rotated(b, q, cos, sin), _rotated(b, k, cos, sin), v, causal=True)
        return b.linear(join_heads(b, y), x.shape[-1], bias=False, name="o_proj")


def _gated(b: Builder, x: Tensor, ffn: int) -> Tensor:
    with b.scope("mlp"):
        gate = b.elementwise("silu", b.linear(x, ffn, bias=False, name="gate_proj"), name="act_fn")
        y = b.mul(gate, b.linear(x, ffn, bias=False, name="up_proj"))
        return b.linear(y, x.shape[-1], bias=False, name="down_proj")
