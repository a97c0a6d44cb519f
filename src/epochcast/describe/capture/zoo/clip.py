"""CLIP: pictures and their texts, each through a transformer of its own, into one space (Radford et al. 2021).

Names and layers are those of Hugging Face's `CLIPModel`: class token and learned positions, pre-norm layers, quick gelu
(x · σ(1.702x), three kernels), a causal mask over 77 tokens of text. The loss between all pairs of a batch is left out:
it is a product of the batch with itself, small beside the towers.
"""

from epochcast.describe.capture.zoo.attention_layers import join_heads, split_heads, token_ids
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.op_kinds import Elementwise
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.errors import BadInput

TOKENS, VOCABULARY, TEXT_LAYERS = 77, 49408, 12


def clip(
    batch: int,
    input_shape: tuple[int, ...] = (3, 224, 224),
    *,
    name: str,
    patch: int,
    layers: int,
    width: int,
    text_width: int,
) -> Graph:
    """Both towers; `layers` and `width` are the picture's. Heads are 64 wide, the common space as wide as the text."""
    if len(input_shape) != 3 or input_shape[1] % patch or input_shape[2] % patch:
        raise BadInput(f"{name} cuts images into {patch}x{patch} patches, got {'x'.join(map(str, input_shape))}")
    b = Builder(name, batch)
    with b.scope("vision_model"):
        picture = _picture(b, b.input("pixel_values", input_shape), patch, layers, width)
    picture = b.linear(picture, text_width, bias=False, name="visual_projection")
    with b.scope("text_model"):
        text = text_tower(b, text_width)
        text = b.view(text, (text.shape[0], text_width), "select")
    text = b.linear(text, text_width, bias=False, name="text_projection")
    scale = b.parameter("logit_scale", (1,))
    text = b.op(Elementwise("mul"), [text], [text.shape], weights=[scale], name="logits")[0]
    return b.finish((picture, text), loss="none")


def _picture(b: Builder, pixels: Tensor, patch: int, layers: int, width: int) -> Tensor:
    with b.scope("embeddings"):
        x = b.conv(pixels, width, patch, stride=patch, bias=False, name="patch_embedding")
        count = x.shape[2] * x.shape[3]
        x = b.view(x, (x.shape[0], count, width), "permute")
        token = b.view(b.parameter("class_embedding", (width,)), (x.shape[0], 1, width), "expand")
        x = b.concatenate([token, x], 1)
        places = b.constant("position_ids", (1, count + 1), DType.INT64)
        x = b.add(x, b.embedding(places, count + 1, width, name="position_embedding"))
    x = b.layer_norm(x, name="pre_layrnorm")
    for index in range(layers):
        x = _layer(b, x, f"encoder.layers.{index}", is_causal=False)
    return b.layer_norm(b.view(x, (x.shape[0], width), "select"), name="post_layernorm")


def text_tower(b: Builder, width: int, layers: int = TEXT_LAYERS, tokens: int = TOKENS) -> Tensor:
    """The states of all tokens of a text."""
    with b.scope("embeddings"):
        x = b.embedding(token_ids(b, tokens), VOCABULARY, width, name="token_embedding")
        places = b.constant("position_ids", (1, tokens), DType.INT64)
        x = b.add(x, b.embedding(places, TOKENS, width, name="position_embedding"))
    for index in range(layers):
        x = _layer(b, x, f"encoder.layers.{index}", is_causal=True)
    return b.layer_norm(x, name="final_layer_norm")


def _layer(b: Builder, x: Tensor, name: str, *, is_causal: bool) -> Tensor:
    width = x.shape[-1]
    with b.scope(name):
        y = b.layer_norm(x, name="layer_norm1")
        with b.scope("self_attn"):
            parts = [b.linear(y, width, name=part) for part in ("q_proj", "k_proj", "v_proj")]
            q, k, v = (split_heads(b, part, width // 64) for part in parts)
            y = b.linear(join_heads(b, b.attention(q, k, v, causal=is_causal)), width, name="out_proj")
        x = b.add(x, y)
        with b.scope("mlp"):
            y = b.linear(b.layer_norm(x, name="layer_norm2"), 4 * width, name="fc1")
            y = b.mul(y, b.elementwise("sigmoid", b.elementwise("scale", y)))
            return b.add(x, b.linear(y, width, name="fc2"))
