"""Vision transformers (Dosovitskiy et al. 2021) as torchvision defines them; tiny and small as in DeiT (2021)."""

from epochcast.describe.capture.zoo.attention_layers import multihead_attention
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.op_kinds import Elementwise
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput


def vision_transformer(
    batch: int,
    input_shape: tuple[int, ...] = (3, 224, 224),
    *,
    name: str,
    patch: int,
    layers: int,
    width: int,
    heads: int,
    classes: int = 1000,
) -> Graph:
    """Patches as tokens behind a class token, a pre-norm encoder, a linear layer on the class token; no dropout."""
    if len(input_shape) != 3 or input_shape[1] % patch or input_shape[2] % patch:
        raise BadInput(f"{name} cuts images into {patch}x{patch} patches, got {'x'.join(map(str, input_shape))}")
    b = Builder(name, batch)
    x = b.conv(b.input("image", input_shape), width, patch, stride=patch, name="conv_proj")
    length = x.shape[2] * x.shape[3] + 1
    x = b.view(x, (batch, length - 1, width), "permute")
    token = b.view(b.parameter("class_token", (1, 1, width)), (batch, 1, width), "expand")
    x = b.concatenate([token, x], 1)
    with b.scope("encoder"):
        places = b.parameter("pos_embedding", (1, length, width))
        x = b.op(Elementwise("add"), [x], [x.shape], weights=[places], name="pos_embedding")[0]
        for index in range(layers):
            with b.scope(f"layers.encoder_layer_{index}"):
                y = b.layer_norm(x, name="ln_1")
                x = b.add(multihead_attention(b, y, None, heads, name="self_attention", batch_first=True), x)
                x = b.add(x, _mlp(b, b.layer_norm(x, name="ln_2")))
        x = b.layer_norm(x, name="ln")
    first = b.view(x, (batch, width), "select")
    return b.finish(b.linear(first, classes, name="heads.head"))


def _mlp(b: Builder, x: Tensor) -> Tensor:
    width = x.shape[-1]
    with b.scope("mlp"):
        return b.linear(b.elementwise("gelu", b.linear(x, 4 * width, name="0")), width, name="3")
