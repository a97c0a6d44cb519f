"""Other methods to estimate the memory of a step, each as its authors state it."""

from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.op_kinds import View
from epochcast.describe.graph.trace import Trace


def accelerate_bytes(trace: Trace) -> float:
    """`accelerate estimate-memory`: training with Adam takes four times the model, whatever the batch."""
    return 4.0 * sum(p.tensor.bytes for p in trace.parameters)


def torchinfo_bytes(trace: Trace) -> float:
    """torchinfo's "estimated total size": input, parameters, and the outputs of all layers forward and backward."""
    outputs = sum(
        op.output.bytes
        for op in trace.ops
        if op.phase is Phase.FORWARD and not isinstance(op.kind, View) and op.weights
    )
    given = sum(t.bytes for t in trace.inputs) * trace.batch
    return given + 2.0 * outputs + sum(p.tensor.bytes for p in trace.parameters)


def line_bytes(batches: tuple[int, int], measured_bytes: tuple[float, float], batch: int) -> float:
    """The thesis' equation 4.7, M = X + B·(I + O + 2Y), through two measured batches."""
    slope = (measured_bytes[1] - measured_bytes[0]) / (batches[1] - batches[0])
    return measured_bytes[0] + slope * (batch - batches[0])
