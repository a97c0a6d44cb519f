"""Rows of experts at a capacity, worked out by hand; and what has none."""

from functools import partial

import pytest

from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.capture.zoo.decoder import decoder
from epochcast.describe.capture.zoo.moe import Mixture
from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_kinds import Matmul
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.predict.memory.peak import peak_memory

TOKENS, WIDTH, EXPERTS, CHOSEN, FFN = 60, 32, 8, 2, 16
MODEL = BuiltModel(
    "mixture",
    partial(
        decoder,
        input_shape=(TOKENS,),
        name="mixture",
        layers=2,
        width=WIDTH,
        heads=4,
        ffn=FFN,
        vocabulary=128,
        mixture=Mixture(EXPERTS, CHOSEN, FFN),
    ),
)


def step(capacity: float | None, batch: int = 3, **options: object) -> Trace:
    return MODEL.trace(Recipe(batch, optimizer="adam", expert_capacity=capacity, **options))  # type: ignore[arg-type]


def products(trace: Trace) -> list[Op]:
    return [op for op in trace.ops if isinstance(op.kind, Matmul) and op.weights and len(op.weights[0].shape) == 3]


@pytest.mark.parametrize(("capacity", "rows"), [(None, 15), (1.0, 15), (1.25, 19), (0.5, 8)])
def test_every_expert_gets_its_capacity_of_each_sequence(capacity: float | None, rows: int) -> None:
    """60 tokens · 2 of 8 experts: 15 by balanced routing, ⌈15 · 1.25⌉ = 19."""
    for batch in (1, 3, 7):
        assert {op.inputs[0].shape[:2] for op in products(step(capacity, batch))} == {(EXPERTS, batch * rows)}


def test_products_work_and_move_tokens_by_the_capacity() -> None:
    """In proportion to the rows: 30 instead of 15 in forward, and both gradients."""

    def flops(trace: Trace) -> float:
        return float(sum(trace.columns.flops[i] for i, name in enumerate(trace.layers) if name.endswith("experts")))

    assert flops(step(2.0)) == pytest.approx(2 * flops(step(None)), rel=0.01)


def test_gradients_have_the_rows_of_their_tensors() -> None:
    trace = step(1.25, precision="amp_bf16", checkpointing=True)
    shapes = {t.name: t.shape for op in trace.ops for t in op.outputs}
    for op in trace.ops:
        for tensor in op.outputs if op.phase is Phase.BACKWARD else ():
            owner = tensor.relation.adds_to_gradient_of
            assert owner not in shapes or shapes[owner] == tensor.shape or tensor.relation.gradient_of


def test_a_capacity_needs_memory_for_its_rows() -> None:
    """Each of two layers keeps of an added row at least its input, gate and up (16 + 16), product and result."""
    small, large = (peak_memory(step(capacity, 64)).allocated_bytes for capacity in (None, 2.0))
    added_rows = 64 * EXPERTS * 15
    assert large - small > 2 * added_rows * (WIDTH + 3 * FFN + WIDTH) * 4


def test_a_network_without_experts_has_no_capacity() -> None:
    with pytest.raises(BadInput, match="no mixture of experts whose tokens are dispatched"):
        zoo_model("resnet18").trace(Recipe(2, expert_capacity=1.25))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"expert_capacity": 0.0}, "above 0"),
        ({"expert_imbalance": 0.9}, "at least 1"),
        ({"expert_capacity": 1.25, "expert_imbalance": 1.5}, "leave `expert_imbalance` out"),
    ],
)
def test_factors_that_make_no_step_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Recipe(2, **options)  # type: ignore[arg-type]
