"""`epochcast bench ops`: random ops, the most informative first, each timed alone.

The ops are drawn once from a seed, and ordered such that every prefix covers the space of sizes evenly. Within each
group (op class, direction, dtype) the next op is the one farthest from all before it (Gonzalez 1985) in the logarithms
of flops, bytes and matrix sizes. Groups take turns, in proportion to the time that networks spend in them. So a short
budget measures the most informative ops, and a longer one only adds to them.

An op is executed on several copies of its operands in turn, which together exceed the last cache where memory allows.
Results are kept until the same copy is used again, as activations are in a training step: operands are in the cache
only where they would be in a network.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import cycle
from math import ceil, log, prod
from random import Random

import numpy as np
import torch
from numpy.typing import NDArray

from epochcast.describe.graph.op import Op
from epochcast.describe.graph.op_kinds import Embedding, Loss, Pool
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.serialization import ops_from_json, ops_to_json
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.host_device import detect_host
from epochcast.measure.bench.campaign import BenchQuestion, CampaignOutcome, key_of, measurement_of
from epochcast.measure.bench.machine_fingerprint import last_cache_bytes, machine
from epochcast.measure.bench.measurements import Measurement
from epochcast.measure.bench.op_kernels import kernel, torch_dtype
from epochcast.measure.bench.random_shapes import OpLimits, draw
from epochcast.measure.bench.timing import sample_on, time_executions
from epochcast.measure.bench.torch_device import device_type

DRAWS = 1200
OP_LIMIT_SECONDS = 0.4
MOST_COPIES = 8
# Ops that take longer than this at the peak speed of the data sheet are not drawn.
LONGEST_SECONDS = 0.03
LARGEST_BYTES = 3 * 2**26
# A dtype without units in the processor runs in slow fallbacks; it is measured rarely.
DTYPE_SHARE = {"cpu": {DType.FLOAT32: 1.0, DType.BFLOAT16: 0.1}}
EVERY_DTYPE = {DType.FLOAT32: 1.0, DType.FLOAT16: 1.0, DType.BFLOAT16: 1.0}

# The weight of a class in the campaign: roughly the share of training time that networks spend in it.
CLASS_SHARE: dict[OpClass, float] = {
    OpClass.CONV: 6,
    OpClass.LINEAR: 6,
    OpClass.CONV_POINTWISE: 5,
    OpClass.ELEMENTWISE: 4,
    OpClass.BATCH_NORM: 3,
    OpClass.CONV_DEPTHWISE: 3,
    OpClass.UPDATE: 3,
    OpClass.ATTENTION: 2,
    OpClass.BATCHED_MATMUL: 2,
    OpClass.COPY: 2,
    OpClass.LAYER_NORM: 2,
    OpClass.POOL: 2,
    OpClass.RECURRENT: 2,
}


def questions(device: str, seed: int = 0, draws: int = DRAWS, dtypes: Sequence[DType] = ()) -> list[BenchQuestion]:
    """All ops of a campaign, the most informative first."""
    shares = DTYPE_SHARE.get(device_type(device), EVERY_DTYPE)
    dtype_shares = {dtype: shares.get(dtype, 1.0) for dtype in dtypes} if dtypes else shares
    groups: dict[tuple[OpClass, str, DType], dict[Op, list[float]]] = {}
    for dtype, share in dtype_shares.items():
        random, limits = Random(seed), limits_on(device)
        for _ in range(ceil(draws * share)):
            for op in draw(random, limits, dtype):
                group = groups.setdefault((op.op_class, op.gradient.value, dtype), {})
                group.setdefault(op, _coordinates(op))
    ranking: list[tuple[float, int, Op]] = []
    directions = Counter((kind, dtype) for kind, _, dtype in groups)
    for (kind, _, dtype), members in groups.items():
        share = dtype_shares[dtype] * CLASS_SHARE.get(kind, 1.0) / directions[kind, dtype]
        ops = list(members)
        for rank, index in enumerate(farthest_first(np.array(list(members.values())))):
            ranking.append(((rank + 0.5) / share, len(ranking), ops[index]))
    return [question_of(op, device) for *_, op in sorted(ranking, key=lambda entry: entry[:2])]


def find_dtypes(text: str | None) -> list[DType]:
    """The dtypes of a list like "float32,bfloat16"; empty where there is none."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    dtypes = {dtype.value: dtype for dtype in EVERY_DTYPE} | {"float64": DType.FLOAT64}
    for name in names:
        if name not in dtypes:
            raise UnknownName("dtype to measure", name, dtypes)
    return [dtypes[name] for name in names]


def question_of(op: Op, device: str) -> BenchQuestion:
    """The question for one op."""
    ask = {"device": device, "ops": ops_to_json((op,))}
    words = ("op", op.op_class.value, op.gradient.value, op.dtype.value)
    return BenchQuestion("op", key_of(words, ask), ask, OP_LIMIT_SECONDS)


def limits_on(device: str) -> OpLimits:
    """The largest op to measure on a device: a part of its memory, and a short time at its peak speed."""
    if device_type(device) == "cuda":
        return OpLimits(flops=1e12, bytes=torch.cuda.get_device_properties(device).total_memory / 16)
    try:
        host = detect_host()
    except BadInput:
        return OpLimits(flops=1e9, bytes=LARGEST_BYTES)
    flops = LONGEST_SECONDS * host.peak_flops_per_second["fp32"]
    return OpLimits(flops, min(host.memory_bytes / 32, LARGEST_BYTES))


def _coordinates(op: Op) -> list[float]:
    op_work = op.work
    sizes = [log(max(1, n)) / 2 for n in (op_work.m, op_work.n, op_work.k, op_work.repeats)]
    return [log(max(1, op_work.flops)), log(max(1, op_work.read_bytes + op_work.written_bytes)), *sizes]


def farthest_first(points: NDArray[np.float64]) -> list[int]:
    """An order of points: first the one nearest to the median, then always the one farthest from all before it."""
    if not len(points):
        return []
    order = [int(np.argmin(((points - np.median(points, axis=0)) ** 2).sum(axis=1)))]
    nearest = np.full(len(points), np.inf)
    while len(order) < len(points):
        nearest = np.minimum(nearest, ((points - points[order[-1]]) ** 2).sum(axis=1))
        nearest[order[-1]] = -1.0
        order.append(int(np.argmax(nearest)))
    return order


# ---- measuring ----------------------------------------------------------------------------------


def measure(question: BenchQuestion) -> Measurement:
    """Time the ops of one question on the device it names."""
    device = str(question.ask["device"])

    def run() -> CampaignOutcome:
        ops = ops_from_json(question.ask["ops"])
        with torch.no_grad():
            calls = [executions(op, device) for op in ops]
            timing = time_executions(lambda: [call() for call in calls], question.limit_seconds, sample_on(device))
        return CampaignOutcome(timing, details={"threads": torch.get_num_threads()})

    return measurement_of(question, machine(device, torch.get_num_threads()), run)


def executions(op: Op, device: str) -> Callable[[], object]:
    """A function that executes the op once, on the next copy of its operands."""
    call = kernel(op.kind, op)
    op_work = op.work
    size_bytes = max(1, op_work.read_bytes + op_work.written_bytes)
    copies = max(1, min(MOST_COPIES, ceil(2 * last_cache_bytes() / size_bytes)))
    operand_copies = [(operands(op, op.inputs, device), operands(op, op.weights, device)) for _ in range(copies)]
    results: list[object] = [None] * copies
    indices = cycle(range(copies))

    def execute() -> None:
        index = next(indices)
        results[index] = None
        results[index] = call(*operand_copies[index])

    return execute


def operands(op: Op, tensors: Sequence[Tensor], device: str) -> list[torch.Tensor]:
    """Tensors with values: normally distributed numbers, or valid indices."""
    return [_values(tensor, _index_bound(op), device) for tensor in tensors]


def _index_bound(op: Op) -> int:
    """The upper bound of the op's indices."""
    if isinstance(op.kind, Loss):
        return op.output.shape[-1] if op.is_gradient else op.inputs[0].shape[-1]
    if isinstance(op.kind, Embedding) and not op.is_gradient:
        return op.weights[0].shape[0]
    if isinstance(op.kind, Pool):
        return prod(op.output.shape[2:])  # positions in one image; a larger index would write outside it
    rows = op.output.shape if op.is_gradient else op.inputs[0].shape
    return rows[0] if rows else 1


def _values(tensor: Tensor, bound: int, device: str) -> torch.Tensor:
    dtype = torch_dtype(tensor.dtype.value)
    if dtype == torch.bool:
        return torch.ones(tensor.shape, dtype=dtype, device=device)
    if not dtype.is_floating_point:
        return torch.randint(0, max(1, bound), tensor.shape, dtype=dtype, device=device)
    # A short random block, repeated: drawing hundreds of megabytes would take longer than the measurement.
    block = torch.randn(min(tensor.elements, 2**16), device=device, dtype=torch.float32).to(dtype)
    values = torch.empty(tensor.shape, dtype=dtype, device=device)
    flat = values.view(-1)
    for begin in range(0, tensor.elements, len(block) or 1):
        flat[begin : begin + len(block)] = block[: tensor.elements - begin]
    return values
