"""What each layer type of a spec file means: one short rule per type, all in this table.

A rule takes the builder, the tensors the layer reads, its keys and its name, and gives the tensor it makes. Shapes are
channels-first; tokens are (length, width). The batch is in front of every shape and never written.
"""

from collections.abc import Mapping

from epochcast.describe.capture.spec import spec_elements as elements
from epochcast.describe.capture.spec import spec_products as products
from epochcast.describe.capture.spec.spec_operands import Rule

ACTIVATIONS = (
    "relu", "relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "mish", "sigmoid", "tanh", "hardswish", "hardsigmoid",
    "softplus", "exp", "sqrt", "identity",
)  # fmt: skip

RULES: Mapping[str, Rule] = {
    "conv": products.conv,
    "depthwise_conv": products.depthwise,
    "conv_transposed": products.conv_transposed,
    "linear": products.linear,
    "matmul": products.matmul,
    "attention": products.attention,
    "embedding": products.embedding,
    "position": products.position,
    "lstm": products.recurrent("lstm"),
    "gru": products.recurrent("gru"),
    "rnn": products.recurrent("rnn"),
    **{
        f"{style}_norm": products.norm(style)
        for style in ("batch", "layer", "rms", "group", "instance", "local_response")
    },
    "max_pool": products.pool("max"),
    "average_pool": products.pool("average"),
    "global_average_pool": products.global_pool("average"),
    "global_max_pool": products.global_pool("max"),
    **{function: elements.activation(function) for function in ACTIVATIONS},
    "add": elements.joined("add"),
    "subtract": elements.joined("sub"),
    "multiply": elements.joined("mul"),
    "divide": elements.joined("div"),
    "maximum": elements.joined("maximum"),
    "dropout": elements.dropout,
    "softmax": elements.softmax,
    "mean": elements.reduce("mean"),
    "sum": elements.reduce("sum"),
    "concatenate": elements.concatenate,
    "flatten": elements.flatten,
    "reshape": elements.reshape,
    "permute": elements.permute,
    "select": elements.select,
    "upsample": elements.upsample,
    "pad": elements.pad,
    "opaque": elements.opaque,
}
"""Every layer type by name; `block` is the reader's own (it holds layers)."""
