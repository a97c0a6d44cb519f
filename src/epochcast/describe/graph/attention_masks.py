"""Masks that PyTorch's fused attention reads, as a rewrite of a forward graph: of padded batches and of windows.

A batch with padding needs a mask of scores, (samples, 1, queries, keys). So does a window under
scaled_dot_product_attention, which knows none: transformers passes a mask (masking_utils.py, `sdpa_mask`), of one
sample for all. FlashAttention has no kernel for a mask, the memory-efficient one has; it computes what the mask hides.
transformers makes one boolean mask for all layers of a kind and copies grouped keys and values for every head
(sdpa_attention.py, `use_gqa_in_sdpa`); scaled_dot_product_attention writes the mask out as a bias in the format of the
queries for each layer and sample (`convert_boolean_attn_mask` in aten/src/ATen/native/transformers/attention.cpp),
which its backward pass keeps.

Eager attention adds a mask to the scores it writes (`older_frameworks`); flash attention by its own library takes the
padding out of the batch, skips what a window hides, and has no mask. transformers writes the mask from a text as long
as the window on, although that one hides nothing yet; here a longer text does.
"""

from dataclasses import replace

from epochcast.describe.graph.older_frameworks import with_own_keys
from epochcast.describe.graph.op import Graph, Op
from epochcast.describe.graph.op_kinds import Attention, Elementwise
from epochcast.describe.graph.ops.attention_op import OPERANDS
from epochcast.describe.graph.tensor import DType, Tensor

LAYER = "attention_mask"


def with_masks(graph: Graph, *, is_padded: bool) -> Graph:
    """The graph whose fused attentions read a mask each, where batches are padded or a window asks for one."""
    ops: list[Op] = []
    masks: dict[tuple[int, ...], Tensor] = {}
    for op in graph.ops:
        kind = op.kind
        if not isinstance(kind, Attention) or len(op.inputs) > OPERANDS or len(op.inputs[0].shape) != 4:
            ops.append(op)
            continue
        hides_more = kind.window_by_mask and 0 < kind.window < op.inputs[1].shape[-2]
        if not (is_padded or hides_more):
            ops.append(op)
            continue
        copies, op = with_own_keys(op)
        q, k = op.inputs[:2]
        shape = (q.shape[0], 1, q.shape[-2], k.shape[-2])
        window = kind.window if hides_more else 0
        if (*shape, window) not in masks:
            of_all = shape if is_padded else (1, *shape[1:])
            masks[*shape, window] = mask = Tensor(of_all, DType.BOOL, f"{LAYER}:{len(masks)}")
            ops.append(Op(mask.name, Elementwise("mask"), (), (mask,), layer=LAYER))
        bias = Tensor(shape, q.dtype, f"{op.name}.bias")
        ops.extend(copies)
        ops.append(Op(bias.name, Elementwise("where"), (masks[*shape, window],), (bias,), layer=op.layer))
        ops.append(replace(op, kind=replace(kind, causal=False), inputs=(*op.inputs, bias)))
    return replace(graph, ops=tuple(ops))
