"""Receptive fields of a graph: how many input pixels, along each side, one output element can see.

The formulas are in `receptive_field.py`. Where branches meet the larger field counts. Ops that mix all positions (a
linear layer on flattened features, a product of two computed tensors, attention, recurrence, a global pool or mean) see
the whole input. As in publications, a field is not cut off at the border (ResNet-50 sees 427 pixels of 224), and the
statistics of a normalisation are not counted.
"""

from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.receptive_field import ReceptiveField


def receptive_fields(graph: Graph) -> dict[str, tuple[int, ...] | None]:
    """The field of every op by its name; None where the input has no spatial dimensions."""
    spatial = graph.inputs[0].shape[2:] if graph.inputs else ()
    if not spatial or not graph.inputs[0].dtype.is_float:
        return {op.name: None for op in graph.ops}
    single_pixel = ReceptiveField((1,) * len(spatial), (1,) * len(spatial))
    fields = {tensor.name: single_pixel for tensor in graph.inputs}
    size_of_op: dict[str, tuple[int, ...] | None] = {}
    for op in graph.ops:
        before = [fields[t.name] for t in op.inputs if t.name in fields]
        if not before:
            size_of_op[op.name] = None
            continue
        joined = ReceptiveField(
            tuple(max(sizes) for sizes in zip(*(f.size for f in before), strict=True)),
            tuple(max(jumps) for jumps in zip(*(f.jump for f in before), strict=True)),
        )
        after = op.kind.receptive_field(op, joined, spatial)
        size_of_op[op.name] = after.size
        for tensor in op.outputs:
            fields[tensor.name] = after
    return size_of_op
