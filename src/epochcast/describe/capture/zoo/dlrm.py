"""Recommenders: DLRM (Naumov et al. 2019) and neural collaborative filtering (He et al. 2017).

Names are those of their reference code. `dlrm` has 26 embedding tables for the categorical features of Criteo's data,
one lookup each, and 13 dense features. Nearly all parameters are rows of tables, so the count follows from the data:
Criteo Kaggle has 33,762,577 categories, Criteo Terabyte with at most 40 million per feature (MLPerf's) 187,767,399.
"""

from collections.abc import Sequence

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.errors import BadInput

DENSE_GRADIENTS = (
    "embedding gradients are counted dense, over whole tables; the reference trains with sparse ones, which is faster"
)

# Distinct values of the 26 categorical features, as the reference code (facebookresearch/dlrm) counts them;
# the second with MLPerf's --max-ind-range=40000000.
KAGGLE_ROWS = (
    *(1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194),
    *(27, 14992, 5461306, 10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572),
)
TERABYTE_ROWS = (
    *(39884406, 39043, 17289, 7420, 20263, 3, 7120, 1543, 63, 38532951, 2953546, 403346, 10),
    *(2208, 11938, 155, 4, 976, 14, 39979771, 25641295, 39664984, 585935, 12972, 108, 36),
)


def dlrm(
    batch: int,
    input_shape: tuple[int, ...] | None = None,
    *,
    name: str,
    rows: Sequence[int] = KAGGLE_ROWS,
    bottom: Sequence[int] = (512, 256, 64, 16),
    top: Sequence[int] = (512, 256, 1),
) -> Graph:
    """Dense features through `bottom`, one row per table as wide as its end, products of all pairs, then `top`."""
    if input_shape is not None and len(input_shape) != 1:
        raise BadInput(f"{name} takes one number of dense features, got {'x'.join(map(str, input_shape))}")
    dense = 13 if input_shape is None else input_shape[0]
    b = Builder(name, batch)
    x = _mlp(b, b.input("dense", (dense,)), bottom, "bot_l")
    width = bottom[-1]
    looked_up = []
    for index, count in enumerate(rows):
        ids = b.input(f"sparse_{index}", (), DType.INT64)
        looked_up.append(b.embedding(ids, count, width, name=f"emb_l.{index}"))
    vectors = len(rows) + 1
    stacked = b.view(b.concatenate([x, *looked_up], 1), (batch, vectors, width))
    products = b.matmul(stacked, stacked, transpose_b=True, name="interaction")
    pairs = vectors * (vectors - 1) // 2
    places = b.constant("lower_triangle", (pairs,), DType.INT64)
    lower = b.gather("index", products, (batch, pairs), places, name="interaction")
    y = _mlp(b, b.concatenate([x, lower], 1, name="interaction"), top, "top_l", last="sigmoid")
    return b.finish(y, loss="bce", notes=(DENSE_GRADIENTS,))


def _mlp(b: Builder, x: Tensor, sizes: Sequence[int], name: str, last: str = "relu") -> Tensor:
    """Linear layers with an activation behind each, numbered as in a `Sequential` of both."""
    for index, size in enumerate(sizes):
        x = b.linear(x, size, name=f"{name}.{2 * index}")
        function = last if index + 1 == len(sizes) else "relu"
        x = b.elementwise(function, x, name=f"{name}.{2 * index + 1}")
    return x


def ncf(
    batch: int,
    input_shape: tuple[int, ...] | None = None,
    *,
    name: str,
    users: int = 138493,
    items: int = 26744,
    factors: int = 64,
    layers: Sequence[int] = (256, 256, 128, 64),
) -> Graph:
    """NeuMF: a product of factors beside a feed-forward network on its own embeddings; sizes of MovieLens-20M."""
    if input_shape is not None:
        raise BadInput(f"{name} takes a user and an item, no input shape")
    b = Builder(name, batch)
    user, item = b.input("user", (), DType.INT64), b.input("item", (), DType.INT64)
    product = b.mul(
        b.embedding(user, users, factors, name="mf_user_embed"), b.embedding(item, items, factors, name="mf_item_embed")
    )
    half = layers[0] // 2
    x = b.concatenate(
        [b.embedding(user, users, half, name="mlp_user_embed"), b.embedding(item, items, half, name="mlp_item_embed")],
        1,
    )
    for index, size in enumerate(layers[1:]):
        x = b.dropout(b.relu(b.linear(x, size, name=f"mlp.{index}")))
    logit = b.linear(b.concatenate([product, x], 1), 1, name="final")
    return b.finish(logit, loss="bce", notes=(DENSE_GRADIENTS,))


def dlrm_terabyte(batch: int, input_shape: tuple[int, ...] | None = None, *, name: str) -> Graph:
    """MLPerf's network: 128 wide, for Criteo Terabyte."""
    bottom, top = (512, 256, 128), (1024, 1024, 512, 256, 1)
    return dlrm(batch, input_shape, name=name, rows=TERABYTE_ROWS, bottom=bottom, top=top)


def dlrm_one_table(
    batch: int, input_shape: tuple[int, ...] | None = None, *, name: str, rows: int = 4 * 1024 * 1024
) -> Graph:
    """AlgoPerf's network (Dahl et al. 2023): MLPerf's products around one table of all 26 features, hashed to `rows`,
    with the diagonal of the interaction kept; its gradient is dense.
    """
    if input_shape is not None:
        raise BadInput(f"{name} takes 13 dense and 26 sparse features, no input shape")
    b = Builder(name, batch)
    x = _mlp(b, b.input("dense", (13,)), (512, 256, 128), "bot_mlp")
    looked_up = b.embedding(b.input("sparse", (26,), DType.INT64), rows, 128, name="embedding")
    stacked = b.concatenate([b.view(x, (batch, 1, 128)), looked_up], 1)
    products = b.matmul(stacked, stacked, transpose_b=True, name="dot_interact")
    places = b.constant("upper_triangle", (27 * 28 // 2,), DType.INT64)
    upper = b.gather("index", products, (batch, 27 * 28 // 2), places, name="dot_interact")
    joined = b.concatenate([x, upper], 1, name="dot_interact")
    y = _mlp(b, joined, (1024, 1024, 512, 256), "top_mlp")
    return b.finish(b.linear(y, 1, name="top_mlp.8"), loss="bce")
