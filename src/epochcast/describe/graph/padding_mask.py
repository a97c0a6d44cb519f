"""Padded batches under PyTorch's fused attention, as a rewrite of a forward graph.

A batch with padding needs a mask of scores, (samples, 1, queries, keys): FlashAttention has no kernel for that, the
memory-efficient one has. transformers makes one boolean mask for all layers (masking_utils.py, `sdpa_mask`);
scaled_dot_product_attention writes it out as a bias in the format of the queries for each layer
(`convert_boolean_attn_mask` in aten/src/ATen/native/transformers/attention.cpp), which its backward pass keeps.

Eager attention adds a mask to the scores it writes (`older_frameworks`); flash attention by its own library takes the
padding out of the batch and has no mask.
"""

from dataclasses import replace

from epochcast.describe.graph.op import Graph, Op
from epochcast.describe.graph.op_kinds import Attention, Elementwise
from epochcast.describe.graph.tensor import DType, Tensor

LAYER = "attention_mask"


def with_padding_mask(graph: Graph) -> Graph:
    """The graph whose fused attentions read a mask each."""
    ops: list[Op] = []
    masks: dict[tuple[int, ...], Tensor] = {}
    for op in graph.ops:
        if not isinstance(op.kind, Attention) or len(op.inputs) > 3 or len(op.inputs[0].shape) != 4:
            ops.append(op)
            continue
        q, k = op.inputs[:2]
        shape = (q.shape[0], 1, q.shape[-2], k.shape[-2])
        if shape not in masks:
            masks[shape] = mask = Tensor(shape, DType.BOOL, f"{LAYER}:{len(masks)}")
            ops.append(Op(mask.name, Elementwise("mask"), (), (mask,), layer=LAYER))
        bias = Tensor(shape, q.dtype, f"{op.name}.bias")
        ops.append(Op(bias.name, Elementwise("where"), (masks[shape],), (bias,), layer=op.layer))
        ops.append(replace(op, inputs=(*op.inputs, bias)))
    return replace(graph, ops=tuple(ops))
