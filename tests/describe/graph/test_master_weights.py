"""Steps that compute in half and add up in float32."""

import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import DType
from epochcast.describe.graph.trace import Trace
from epochcast.predict.memory.lifetimes import Role
from epochcast.predict.memory.peak import step_on


def trace(precision: str = "bf16_master", **options: object) -> Trace:
    return zoo_model("gpt2", (64,)).trace(Recipe(2, precision=precision, optimizer="adam", **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("precision", ["bf16_master", "fp16_master"])
def test_two_bytes_of_parameters_four_of_gradients_twelve_of_state(precision: str) -> None:
    step = trace(precision)
    count = step.parameter_counts[0]
    most = step_on(step, None).live_bytes(2).max(axis=1)
    assert most[Role.PARAMETERS] == 2 * count
    assert most[Role.GRADIENTS] == 4 * count
    assert most[Role.OPTIMIZER_STATE] == 12 * count


def test_gradients_in_half_live_until_the_backward_pass_is_done() -> None:
    """At the end of the backward pass all of them, two bytes each; none when the update begins."""
    step = trace(update_style="fused")
    live = step_on(step, None).live_bytes(2)
    first = next(place for place, op in enumerate(step.template.base) if op.phase is Phase.UPDATE)
    assert live[Role.TEMPORARIES, first + 1] >= 2 * step.parameter_counts[0]
    assert live[Role.TEMPORARIES, first + 2] == 0


def test_every_parameter_is_added_up_once_and_rewritten_from_its_master() -> None:
    step = trace()
    adds = [op for op in step.ops if is_main(op)]
    assert len(adds) == len(step.parameters)
    assert all(op.output.dtype is DType.FLOAT32 and op.inputs[1].dtype is DType.BFLOAT16 for op in adds)
    last = step.ops[-1]
    assert {t.relation.master_of for t in last.inputs} == {p.name for p in step.parameters}
    assert {t.dtype for t in last.outputs} == {DType.BFLOAT16}


def is_main(op: Op) -> bool:
    return op.phase is Phase.BACKWARD and len(op.outputs) == 1 and op.output in op.inputs and op.output.dtype.bytes == 4


def test_products_are_those_of_half() -> None:
    assert trace().flops == trace("bf16").flops | {"elementwise": trace().flops["elementwise"]}
    assert trace().flops["elementwise"] > trace("bf16").flops["elementwise"]
