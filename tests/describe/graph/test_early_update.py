import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.predict.memory.lifetimes import Role, lifetimes
from epochcast.predict.memory.peak import peak_memory

GPT2 = zoo_model("gpt2", (64,))
VALUES = 124_439_808
TABLE = 50_257 * 768
"""Of the vocabulary, the largest parameter."""


def trace(**options: object) -> Trace:
    return GPT2.trace(Recipe(1, optimizer="adamw", precision="bf16", **options))  # type: ignore[arg-type]


def most(step: Trace, role: str) -> int:
    return int(peak_memory(step).timeline.live_bytes[role].max())


def test_gradients_are_freed_as_soon_as_they_are_used() -> None:
    """The table's gradient waits for both its parts and is alone at the end; all together are three times it."""
    assert most(trace(), "gradients") == 2 * VALUES
    assert 2 * TABLE <= most(trace(update_in_backward=True, update_style="loop"), "gradients") < 2 * TABLE + 2**24


def test_every_parameter_is_updated_once_behind_its_gradient() -> None:
    step = trace(update_in_backward=True, update_style="fused")
    updates = [op for op in step.ops if op.phase is Phase.UPDATE]
    assert len(updates) == sum(p.trainable for p in step.parameters)
    finished = {t.name: place for place, op in enumerate(step.ops) for t in op.outputs if op.phase is Phase.BACKWARD}
    for place, op in enumerate(step.ops):
        if op.phase is Phase.UPDATE:
            assert all(finished[t.name] < place for t in op.inputs if t.relation.gradient_of)
    assert most(step, "optimizer_state") == most(trace(), "optimizer_state")


@pytest.mark.parametrize(
    ("options", "message"),
    [({"accumulate": 2}, "they cannot be accumulated"), ({"precision": "bf16_master"}, "master weights")],
)
def test_what_needs_all_gradients_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Recipe(1, optimizer="adamw", update_in_backward=True, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("precision", "value_bytes"), [("bf16", 2), ("amp_bf16", 4), ("bf16_master", 4)])
def test_an_average_is_one_more_copy_in_the_format_of_the_update(precision: str, value_bytes: int) -> None:
    plain, averaged = (
        lifetimes(GPT2.trace(Recipe(1, "adamw", precision, ema=ema))).total_bytes(Role.OPTIMIZER_STATE)
        for ema in (False, True)
    )
    assert averaged - plain == value_bytes * VALUES


def test_a_loop_over_tensors_has_temporaries_of_one_at_a_time() -> None:
    """Adam's denominator: of all parameters, or of the largest."""
    together, apart = trace(update_style="foreach"), trace(update_style="loop")
    at_update = [int(peak_memory(step).timeline.live_bytes["temporaries"][-1]) for step in (together, apart)]
    assert at_update == [2 * VALUES, 2 * TABLE]
