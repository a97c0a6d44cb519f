"""Sequence parallelism against the closed forms of Korthikanti et al. 2022, and against tensor parallelism alone."""

import pytest

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.op_kinds import Norm
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import place
from epochcast.predict.forecast.strategies.degrees import Layout
from epochcast.predict.forecast.strategies.rank_steps import rank_for
from epochcast.predict.forecast.strategies.tensor_parallel import Rank
from epochcast.predict.memory.lifetimes import Role, lifetimes

S, H, A = 512, 512, 8


def rank(
    layers: int = 8, tensor: int = 4, context: int = 1, *, scattered: bool = True, attention: str = "flash"
) -> Rank:
    model = find_model(f"decoder:layers={layers},hidden={H},heads={A},vocab=5000,style=gpt", (S,))
    recipe = Recipe(1, "adam", "fp16_master", attention=attention, sequence_parallel=scattered)
    return rank_for(model.trace(recipe), Layout(tensor=tensor, context=context))


def kept_bytes(trace: Trace) -> int:
    """Per sample, what the forward pass leaves for the backward pass."""
    lives = lifetimes(trace)
    end = max(place for place, op in enumerate(trace.template.base) if op.phase is Phase.FORWARD)
    kept = (lives.roles == Role.ACTIVATIONS) & (lives.born <= end) & (lives.last > end)
    return int(lives.sample_bytes[kept].sum())


def layer_bytes(tensor: int, *, scattered: bool, attention: str = "flash") -> float:
    """One layer more, in units of s·b·h."""
    fewer, more = (
        kept_bytes(rank(layers, tensor, scattered=scattered, attention=attention).trace) for layers in (6, 7)
    )
    return (more - fewer) / (S * H)


@pytest.mark.parametrize("tensor", [2, 4, 8])
def test_activations_of_a_layer_follow_the_closed_forms(tensor: int) -> None:
    """sbh(10 + 24/t) with tensor parallelism alone, sbh·34/t with both; the scores are in the fused kernel."""
    assert layer_bytes(tensor, scattered=False) == pytest.approx(10 + 24 / tensor, rel=0.005)
    assert layer_bytes(tensor, scattered=True) == pytest.approx(34 / tensor, rel=0.005)


@pytest.mark.parametrize("scattered", [False, True])
def test_scores_in_memory_are_split_by_heads_either_way(scattered: bool) -> None:
    """Between 2as/h (the probabilities) and 5as/h (with dropout) of a layer, a t-th of it on each rank."""
    half, quarter = (
        layer_bytes(t, scattered=scattered, attention="eager") - layer_bytes(t, scattered=scattered) for t in (2, 4)
    )
    assert half == pytest.approx(2 * quarter, rel=0.01)
    assert 1.9 <= 2 * half / (A * S / H) <= 5.1


def test_an_all_reduce_becomes_a_reduce_scatter_and_an_all_gather() -> None:
    """Of eight layers: four sums each, the embedding and the output; two inputs each and the output's are gathered
    again.
    """
    alone, cut = rank(scattered=False), rank()
    assert not cut.sums
    assert len(alone.sums) == len(cut.scatters) == 8 * 4 + 2
    assert len(cut.gathers) == len(cut.scatters) + 8 * 2 + 1
    assert {size for *_, size in (*cut.gathers, *cut.scatters)} == {size for *_, size in alone.sums}


def test_products_are_the_same_and_vectors_a_part() -> None:
    alone, cut = rank(scattered=False).trace, rank().trace
    assert cut.flops["matrix"] == alone.flops["matrix"]
    outside = [sum(op.output.elements for op in t.ops if op.kind == Norm("layer")) for t in (alone, cut)]
    assert outside[1] == pytest.approx(outside[0] / 4, rel=0.01)
    assert sum(p.elements for p in cut.parameters) == sum(p.elements for p in alone.parameters)


def test_contexts_cut_what_is_left() -> None:
    whole, cut = rank(tensor=2), rank(tensor=2, context=2)
    assert kept_bytes(cut.trace) == pytest.approx(kept_bytes(whole.trace) / 2, rel=0.02)
    assert sum(s for *_, s in cut.gathers) == pytest.approx(sum(s for *_, s in whole.gathers) / 2)


def test_a_rank_resizes_as_the_whole_does() -> None:
    small = rank().trace
    assert kept_bytes(small.rebatch(8)) == kept_bytes(small)
    assert small.rebatch(8).flops["matrix"] == pytest.approx(8 * small.flops["matrix"], rel=0.01)


def test_a_large_model_needs_far_less_and_takes_no_longer_by_kernels() -> None:
    plain, cut = (
        forecast_job(
            Job(
                "llama2_70b",
                batch=2,
                accumulate=8,
                precision="bf16_master",
                optimizer="adamw",
                update_style="fused",
                sequence_parallel=is_cut,
            ),
            place("H100", gpus=32, nodes=4, strategy="tp8,pp4", topology="DGX H100"),
        )
        for is_cut in (False, True)
    )
    assert cut.peak_breakdown["activations"] < 0.6 * plain.peak_breakdown["activations"]
    kernels = [parts.forward + parts.backward for parts in (cut.details.step.parts, plain.details.step.parts)]
    assert kernels[0] < kernels[1]


def test_without_tensor_parallelism_it_is_said_to_change_nothing() -> None:
    job = Job("gpt2", batch=2, sequence_parallel=True)
    forecasts = [forecast_job(job, place("A100", gpus=4, strategy=s), step_only=True) for s in ("ddp", "tp4")]
    said = ["sequence_parallel" in " ".join(forecast.warnings) for forecast in forecasts]
    assert said == [True, False]
