"""Latent attention: keys and values from one narrow vector per token (DeepSeek-V2, Liu et al. 2024).

    q = W_qb · norm(W_qa·x)        k, v = W_kvb · norm(c),  c = W_kva·x       H heads of D_plain + D_rotary and D_value

Only a part of every head is turned by its position; of the keys that part is one for all heads. Training multiplies
everything out, so that fused attention sees H full heads. Names are those of Hugging Face's `DeepseekV3Attention`.
"""

from dataclasses import dataclass

from epochcast.describe.capture.zoo.attention_layers import join_heads, rms_norm, split_heads
from epochcast.describe.capture.zoo.rotary import rotated
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Latent:
    """Widths: of the two narrow vectors, and of a head's plain, turned and value parts."""

    query_rank: int
    key_rank: int
    plain: int
    rotary: int
    value: int


def latent_attention(b: Builder, x: Tensor, heads: int, latent: Latent, cos: Tensor, sin: Tensor) -> Tensor:
    """Causal attention over `heads` heads."""
    batch, length, width = x.shape
    plain, rotary = latent.plain, latent.rotary
    with b.scope("self_attn"):
        q = rms_norm(b, b.linear(x, latent.query_rank, bias=False, name="q_a_proj"), name="q_a_layernorm")
        q = split_heads(b, b.linear(q, heads * (plain + rotary), bias=False, name="q_b_proj"), heads)
        q_plain, q_turning = b.split(q, (plain, rotary))
        both = b.linear(x, latent.key_rank + rotary, bias=False, name="kv_a_proj_with_mqa")
        narrow, k_turning = b.split(both, (latent.key_rank, rotary))
        narrow = rms_norm(b, narrow, name="kv_a_layernorm")
        kv = split_heads(b, b.linear(narrow, heads * (plain + latent.value), bias=False, name="kv_b_proj"), heads)
        k_plain, v = b.split(kv, (plain, latent.value))
        k_turned = rotated(b, b.view(k_turning, (batch, 1, length, rotary)), cos, sin)
        k_turned = b.copy("repeat", k_turned, (batch, heads, length, rotary))
        q = b.concatenate([q_plain, rotated(b, q_turning, cos, sin)], -1)
        y = b.attention(q, b.concatenate([k_plain, k_turned], -1), v, causal=True)
        return b.linear(join_heads(b, y), width, bias=False, name="o_proj")
