"""Llama-style decoders by configuration.

Touvron et al. 2023 (Llama 2), Grattafiori et al. 2024 (Llama 3), Jiang et al. 2023 (Mistral), Zhang et al. 2024
(TinyLlama), Gemma Team 2024 (Gemma, Gemma 2), Abdin et al. 2024 (Phi-3), Yang et al. 2025 (Qwen3), OpenAI 2025
(gpt-oss), DeepSeek-AI 2024 (DeepSeek-V3), Kimi Team 2025 (Kimi K2).

Root-mean-square norms in front, rotary positions, a gated feed-forward layer or a mixture of them (`moe`), fewer key
and value heads than query heads (Ainslie et al. 2023) or latent ones (`latent`), no dropout. Names and layers are those
of Hugging Face's `LlamaForCausalLM`; Phi-3 packs its projections (`packed`). A sliding window (Mistral 7B v0.1, Gemma 2
and 3, Phi-3, gpt-oss) is read as a mask by PyTorch's own attention, and skipped by the kernels with sinks of gpt-oss.
"""

from dataclasses import dataclass
from functools import partial

from epochcast.describe.capture.zoo.attention_layers import (
    gated,
    in_float32,
    join_heads,
    rms_norm,
    sequence_length,
    split_heads,
    token_ids,
)
from epochcast.describe.capture.zoo.latent import Latent, latent_attention
from epochcast.describe.capture.zoo.moe import Mixture, mixture_layer
from epochcast.describe.capture.zoo.rotary import rotated, rotations
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.op_kinds import Attention
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput

CAPPED_NOTE = (
    "its scores are capped, which PyTorch's own fused attention cannot do: they are written to memory, as transformers "
    "does by default; FlashAttention 2 does not write them (`attention` flash)"
)


@dataclass(frozen=True, slots=True)
class _Heads:
    """Query heads, key-value heads and their width; biases; norms of queries and keys; a sink for scores; a cap."""

    count: int
    groups: int
    width: int
    qkv_bias: bool
    o_bias: bool
    has_norms: bool
    has_sinks: bool
    has_cap: bool
    is_all_wide: bool
    is_packed: bool


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
    o_bias: bool = False,
    head_norms: bool = False,
    sinks: bool = False,
    window: int = 0,
    global_every: int = 0,
    activation: str = "silu",
    scaled_tokens: bool = False,
    norms_behind: bool = False,
    capped_logits: bool = False,
    wide_norms: bool = False,
    packed: bool = False,
    latent: Latent | None = None,
    mixture: Mixture | None = None,
    dense_layers: int = 0,
) -> Graph:
    """Any such decoder; `kv_heads` defaults to `heads`, `tied` shares the output with the token embeddings.

    Layers look at `window` tokens only, but for the last of every `global_every`; the first `dense_layers` have no
    mixture.
    Gemma multiplies its token embeddings by a constant (`scaled_tokens`); Gemma 2 normalises behind attention and
    feed-forward layer too (`norms_behind`) and bends its logits and its scores by a tanh (`capped_logits`). All norms
    of Gemma multiply by their weights in float32 (`wide_norms`).

    >>> decoder(1, (8,), name="tiny", layers=1, width=16, heads=4, kv_heads=2, ffn=32, vocabulary=100).parameter_count
    5552
    """
    groups = heads if kv_heads is None else kv_heads
    if heads % groups:
        raise BadInput(f"{name}: {groups} key-value heads do not divide {heads} heads")
    each = width // heads if head_width is None else head_width
    length = sequence_length(name, input_shape, context)
    shape = _Heads(heads, groups, each, qkv_bias, o_bias, head_norms, sinks, capped_logits, wide_norms, packed)
    b = Builder(name, batch)
    norm = partial(rms_norm, b, is_all_wide=wide_norms)
    with b.scope("model"):
        x = b.embedding(token_ids(b, length), vocabulary, width, name="embed_tokens")
        if scaled_tokens:
            x = b.elementwise("scale", x)
        cos, sin = rotations(b, length, latent.rotary if latent else each)
        for index in range(layers):
            with b.scope(f"layers.{index}"):
                y = norm(x, name="input_layernorm")
                if latent:
                    y = latent_attention(b, y, heads, latent, cos, sin)
                else:
                    own_window = 0 if is_global(index, global_every) else window
                    y = _attention(b, y, shape, cos, sin, own_window)
                if norms_behind:
                    y = norm(y, name="post_attention_layernorm")
                x = b.add(x, y)
                y = norm(x, name="pre_feedforward_layernorm" if norms_behind else "post_attention_layernorm")
                if mixture is None or index < dense_layers:
                    y = gated(b, y, ffn, activation=activation, packed=packed)
                else:
                    y = mixture_layer(b, y, mixture)
                x = b.add(x, norm(y, name="post_feedforward_layernorm") if norms_behind else y)
        x = norm(x, name="norm")
    table = b.parameters["model.embed_tokens.weight"].tensor if tied else None
    logits = b.linear(x, vocabulary, bias=False, weight=table, name="lm_head")
    if capped_logits:
        for function in ("scale", "tanh", "scale"):
            logits = b.elementwise(function, logits)
    return b.finish(in_float32(b, logits), units_per_sample=length, notes=(CAPPED_NOTE,) if capped_logits else ())


def is_global(layer: int, global_every: int) -> bool:
    """Whether a layer of a network with a window looks at all tokens: the last of every so many (0: none)."""
    return global_every > 0 and (layer + 1) % global_every == 0


def _attention(b: Builder, x: Tensor, heads: _Heads, cos: Tensor, sin: Tensor, window: int) -> Tensor:
    with b.scope("self_attn"):
        sizes = {"q_proj": heads.count, "k_proj": heads.groups, "v_proj": heads.groups}
        widths = [count * heads.width for count in sizes.values()]
        if heads.is_packed:
            parts = b.split(b.linear(x, sum(widths), bias=heads.qkv_bias, name="qkv_proj"), widths)
        else:
            parts = tuple(
                b.linear(x, wide, bias=heads.qkv_bias, name=name) for name, wide in zip(sizes, widths, strict=True)
            )
        q, k, v = (split_heads(b, part, count) for part, count in zip(parts, sizes.values(), strict=True))
        if heads.has_norms:
            q, k = (rms_norm(b, t, name=n, is_all_wide=heads.is_all_wide) for t, n in ((q, "q_norm"), (k, "k_norm")))
        q, k = rotated(b, q, cos, sin), rotated(b, k, cos, sin)
        if heads.is_packed:  # Phi-3 joins the part of a head that turns and the rest, which is nothing here
            q, k = (b.concatenate([t], -1) for t in (q, k))
        operands = [q, k, v]
        weights = [b.parameter("sinks", (heads.count,))] if heads.has_sinks else []
        by_mask = window > 0 and not heads.has_sinks
        kind = Attention(causal=True, window=window, window_by_mask=by_mask, capped=heads.has_cap)
        y = b.op(kind, operands, [(*q.shape[:-1], v.shape[-1])], weights=weights, name="attention")[0]
        y = b.copy("contiguous", y, y.shape) if heads.is_packed else y
        return b.linear(join_heads(b, y), x.shape[-1], bias=heads.o_bias, name="o_proj")
