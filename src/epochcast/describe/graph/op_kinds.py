"""The built-in operators by name. Their formulas are in `ops/`, one module per operator or family."""

from epochcast.describe.graph.op import Kind
from epochcast.describe.graph.op_registry import KIND_CLASSES
from epochcast.describe.graph.ops.attention_op import Attention
from epochcast.describe.graph.ops.conv_op import Conv
from epochcast.describe.graph.ops.elements_op import (
    DETACHED,
    FETCHED,
    GATHERED,
    SCATTERED,
    Copy,
    Elementwise,
    Reduce,
    View,
)
from epochcast.describe.graph.ops.host_loop_op import HostLoop
from epochcast.describe.graph.ops.indexing_op import Embedding, Gather, Scatter
from epochcast.describe.graph.ops.joined_op import JoinedSlices
from epochcast.describe.graph.ops.loss_op import Loss
from epochcast.describe.graph.ops.matmul_op import Matmul
from epochcast.describe.graph.ops.norm_op import Norm, Softmax
from epochcast.describe.graph.ops.opaque_op import Opaque
from epochcast.describe.graph.ops.pool_op import Pool
from epochcast.describe.graph.ops.recurrent_op import Recurrent
from epochcast.describe.graph.ops.update_op import OptimizerUpdate

__all__ = [
    "DETACHED",
    "FETCHED",
    "GATHERED",
    "KIND_CLASSES",
    "SCATTERED",
    "Attention",
    "Conv",
    "Copy",
    "Elementwise",
    "Embedding",
    "Gather",
    "HostLoop",
    "JoinedSlices",
    "Kind",
    "Loss",
    "Matmul",
    "Norm",
    "Opaque",
    "OptimizerUpdate",
    "Pool",
    "Recurrent",
    "Reduce",
    "Scatter",
    "Softmax",
    "View",
]
