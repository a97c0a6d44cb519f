"""How layers are shared out over stages, and what a stage holds."""

import pytest

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.predict.forecast.strategies.cuts import segments
from epochcast.predict.forecast.strategies.degrees import Layout
from epochcast.predict.forecast.strategies.pipeline_stages import fullest_stage, shared_out
from epochcast.predict.forecast.strategies.strategy_table import find_strategy


def trace(layers: int = 8, vocab: int = 1000, accumulate: int = 1) -> Trace:
    model = find_model(f"decoder:layers={layers},hidden=128,heads=4,vocab={vocab}", (32,))
    return model.trace(Recipe(2, "adam", "bf16_master", accumulate=accumulate))


def layers_of(step: Trace, layout: Layout) -> list[int]:
    """Layers on each part of the model, by the norms in front of attention."""
    cut = segments(step)
    parts = shared_out(step, cut, [1.0] * (cut.count - 1) + [100.0], layout)
    found = [0] * (layout.pipeline * layout.chunks)
    segment_of = cut.of_entry[step.entries]
    for op, segment in zip(step.template.base, segment_of.tolist(), strict=True):
        if "attention_norm" in op.layer and op.phase.value == "forward":
            found[parts[segment]] += 1
    return found


def test_even_stages_have_as_many_layers_and_balanced_ones_as_much_work() -> None:
    """A heavy output layer is alone on the last stage, unless stages are even (Megatron-LM)."""
    assert layers_of(trace(), Layout(pipeline=4, is_even=True)) == [2, 2, 2, 2]
    assert layers_of(trace(), Layout(pipeline=2, chunks=4, is_even=True)) == [1] * 8
    assert layers_of(trace(), Layout(pipeline=4))[-1] == 0


def test_the_first_stage_holds_as_many_micro_batches_as_there_are_stages() -> None:
    layout = Layout(pipeline=4)
    _, all_bytes = fullest_stage(trace(accumulate=64), layout)
    _, two_bytes = fullest_stage(trace(accumulate=2), layout)
    _, none_bytes = fullest_stage(trace(accumulate=1), layout)
    assert all_bytes == pytest.approx(3 * two_bytes, rel=0.01)
    assert none_bytes == 0
    _, chunked_bytes = fullest_stage(trace(accumulate=64), Layout(pipeline=4, chunks=2))
    assert chunked_bytes == pytest.approx(all_bytes / 3 * (3 + 3 / 2), rel=0.35)


def test_a_heavy_loss_makes_the_last_stage_the_fullest() -> None:
    stage, others = fullest_stage(trace(vocab=200_000, accumulate=1), Layout(pipeline=4, is_even=True))
    assert any(p.name == "lm_head.weight" for p in stage.parameters)
    assert others == 0


def test_even_without_a_pipeline_is_refused() -> None:
    with pytest.raises(BadInput, match=r"'dp2,tp2,even'.*no pp"):
        find_strategy("dp2,tp2,even", 4)
