"""Experts in a loop: the same network as with grouped products, more launches, and gradients of a stack by hand."""

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.op import Op
from epochcast.describe.graph.op_kinds import HostLoop, JoinedSlices, Matmul
from epochcast.describe.graph.recipe import Recipe

GROUPED = "decoder:layers=1,hidden=64,heads=4,vocab=100,ffn=32,experts=4,chosen=2"
LOOPED = f"{GROUPED},loop=1"
EXPERTS = 4


def ops(reference: str, *, lora: int = 0) -> tuple[Op, ...]:
    return tuple(find_model(reference, (16,)).trace(Recipe(2, precision="bf16", lora=lora)).ops)


def test_a_loop_has_the_parameters_and_flops_of_grouped_products() -> None:
    grouped, looped = (find_model(reference, (16,)).graph(2) for reference in (GROUPED, LOOPED))
    assert grouped.parameter_count == looped.parameter_count
    products = [
        sum(op.kind.flops(op) for op in ops(reference) if isinstance(op.kind, Matmul))
        for reference in (GROUPED, LOOPED)
    ]
    assert products[0] == products[1]


def test_a_loop_starts_a_product_per_expert_and_waits_for_their_sizes() -> None:
    forward = [op for op in ops(LOOPED) if not op.is_gradient]
    assert sum("experts" in op.name and isinstance(op.kind, Matmul) for op in forward) == 2 * EXPERTS
    assert [op.kind.is_awaited for op in forward if isinstance(op.kind, HostLoop)] == [True]
    assert sum("experts" in op.name and isinstance(op.kind, Matmul) for op in ops(GROUPED) if not op.is_gradient) == 2


def test_the_gradient_of_every_slice_is_a_stack() -> None:
    stacked = [op for op in ops(LOOPED) if isinstance(op.kind, JoinedSlices) and op.is_gradient]
    stacks = {op.kind.read_bytes(op) for op in stacked}
    half = 2
    # zeros and a sum for each of four experts, of stacks of four (64, 64) or (64, 32) weights
    assert stacks == {2 * EXPERTS * EXPERTS * 64 * 64 * half, 2 * EXPERTS * EXPERTS * 64 * 32 * half}
    assert {op.kind.written_bytes(op) for op in stacked} == stacks
    assert {op.kind.launches(op) for op in stacked} == {3 * EXPERTS}


def test_frozen_stacks_have_no_gradient() -> None:
    assert not [op for op in ops(LOOPED, lora=8) if isinstance(op.kind, JoinedSlices) and op.is_gradient]
