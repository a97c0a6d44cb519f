from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.compilers import COMPILERS
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.optimizer import OPTIMIZERS
from epochcast.describe.graph.precision import PRECISIONS
from epochcast.describe.graph.recipe import STYLES, Recipe
from epochcast.describe.graph.trace import Trace, trace_from
from epochcast.predict.forecast.step_parts import UPDATE
from epochcast.predict.memory.lifetimes import Role, lifetimes

RESNET = zoo_model("resnet18")


def two_layers(batch: int) -> Graph:
    """5 → 7 → relu → 3, no biases: weights of 35 and 21."""
    b = Builder("two", batch)
    x = b.linear(b.input("x", (5,)), 7, bias=False, name="one")
    return b.finish(b.linear(b.relu(x, name="relu"), 3, bias=False, name="two"), loss="none")


def peak(trace: Trace, **options: bool) -> dict[str, int]:
    """What is alive at the peak, by role, and the name of its op."""
    lives = lifetimes(trace, **options)
    live = lives.live_bytes(lives.bytes_at(trace.batch))
    where = int(live.sum(axis=0).argmax())
    return {role.label: int(live[role, where]) for role in Role if live[role, where]}


# Forward, batch 2, words: the input 10 stays. Layer one's output 14 dies once relu has made its 14; then relu's 14 and
# the result 6. Most at once: 10 + 14 + 14.
def test_forward_by_hand() -> None:
    found = peak(trace_from(two_layers, Recipe(2, mode="forward")))
    assert found == {"parameters": 4 * 56, "inputs": 4 * 10, "temporaries": 4 * (14 + 14)}


# Adam's update: parameters, gradients, two moments, the square roots of all; the input and the given gradient stay.
def test_training_by_hand() -> None:
    found = peak(trace_from(two_layers, Recipe(2, optimizer="adam")))
    assert found == {
        "parameters": 4 * 56,
        "gradients": 4 * 56,
        "optimizer_state": 2 * 4 * 56,
        "temporaries": 4 * 56,
        "inputs": 4 * (10 + 6),
    }


@pytest.mark.parametrize(("optimizer", "state"), [("sgd", 0), ("momentum", 1), ("adam", 2), ("rmsprop", 1)])
def test_state_is_a_multiple_of_the_parameters(optimizer: str, state: int) -> None:
    lives = lifetimes(RESNET.trace(Recipe(2, optimizer=optimizer)))
    assert lives.total_bytes(Role.OPTIMIZER_STATE) == state * lives.total_bytes(Role.PARAMETERS)


def test_an_8_bit_optimizer_keeps_a_quarter_of_the_state() -> None:
    whole, small = (lifetimes(RESNET.trace(Recipe(2, optimizer=o))) for o in ("adamw", "adamw8bit"))
    ratio = small.total_bytes(Role.OPTIMIZER_STATE) / whole.total_bytes(Role.OPTIMIZER_STATE)
    assert ratio == pytest.approx(1 / 4, rel=0.01)  # small tensors stay in float32


def test_a_fused_update_needs_no_temporaries() -> None:
    each, fused = (
        peak(trace_from(two_layers, Recipe(1, optimizer="adam", update_style=s))) for s in ("foreach", "fused")
    )
    assert each["temporaries"] == 4 * 56 > fused["temporaries"]


@given(batch=st.integers(2, 500))
def test_sizes_are_those_of_the_step_built_at_that_batch(batch: int) -> None:
    recipe = Recipe(batch, optimizer="adam")
    lives = lifetimes(trace_from(two_layers, recipe))
    sizes = dict(zip(lives.names, lives.bytes_at(batch).tolist(), strict=True))
    for op in trace_from(two_layers, recipe).ops:
        for tensor in op.outputs:
            assert sizes.get(tensor.name, tensor.bytes) >= tensor.bytes


def test_every_birth_has_one_death_or_stays() -> None:
    lives = lifetimes(RESNET.trace(Recipe(2, optimizer="adam")), set_to_none=False)
    before, steps = lives.history
    alive = set(before)
    for events in steps:
        for event in events:
            if event >= 0:
                assert event not in alive
                alive.add(event)
            else:
                alive.remove(~event)
    stays = {i for i, role in enumerate(lives.roles) if role not in (Role.ACTIVATIONS, Role.TEMPORARIES)}
    assert alive == stays


def test_accumulated_or_kept_gradients_are_there_from_the_start() -> None:
    once = peak(RESNET.trace(Recipe(32)))
    again = peak(RESNET.trace(Recipe(32, accumulate=4)))
    kept = peak(RESNET.trace(Recipe(32)), set_to_none=False)
    assert once["gradients"] < again["gradients"] == kept["gradients"] == again["parameters"]


def test_frozen_layers_keep_no_activations_gradients_or_state() -> None:
    whole, head = (
        lifetimes(RESNET.trace(Recipe(32, optimizer="adam", freeze=frozen)))
        for frozen in ((), ("conv1*", "bn1*", "layer*"))
    )
    assert head.total_bytes(Role.PARAMETERS) == whole.total_bytes(Role.PARAMETERS)
    assert head.total_bytes(Role.OPTIMIZER_STATE) == 2 * 4 * (512 * 1000 + 1000)
    assert head.total_bytes(Role.ACTIVATIONS, 32) < whole.total_bytes(Role.ACTIVATIONS, 32) / 3


def test_autocast_keeps_full_weights_and_half_copies_and_saves_on_activations() -> None:
    single, mixed = (peak(RESNET.trace(Recipe(64, precision=p))) for p in ("fp32", "amp"))
    assert mixed["parameters"] == single["parameters"]
    assert mixed["autocast_copies"] > 0
    assert mixed["activations"] < 0.6 * single["activations"]


def test_pure_half_halves_everything() -> None:
    single, half = (
        sum(peak(RESNET.trace(Recipe(32, optimizer="adam", precision=p))).values()) for p in ("fp32", "bf16")
    )
    assert half == pytest.approx(single / 2, rel=0.1)  # pooling indices stay whole numbers


# Every block's input has two gradients: of the branch and of the way around it.
def test_a_second_gradient_is_added_into_the_first_unless_a_dispatch_mode_looks_on() -> None:
    real, watched = (lifetimes(RESNET.trace(Recipe(8)), sums_in_place=way) for way in (True, False))
    assert len(watched) == len(real) + 8
    assert sum(".accumulate" in name for name in watched.names) == 8


# y = x·w is used by two products, and its two gradients are summed: 40 a sample each. In place two of them live at the
# sum; beside its parts three. Both results have one column, so nothing else of that size is alive there.
def test_a_sum_beside_its_parts_by_hand() -> None:
    def forked(batch: int) -> Graph:
        b = Builder("forked", batch)
        y = b.linear(b.input("x", (1,)), 40, bias=False, name="one")
        parts = [b.linear(y, 1, bias=False, name=name) for name in ("left", "right")]
        return b.finish(b.add(*parts, name="add"), loss="none")

    trace = trace_from(forked, Recipe(1000, mode="forward_backward"))
    real, watched = (sum(peak(trace, sums_in_place=way).values()) for way in (True, False))
    assert watched - real == 4 * 1000 * 40


def test_eager_attention_needs_its_scores() -> None:
    vit = zoo_model("vit_ti_16")
    flash, eager = (peak(vit.trace(Recipe(32, attention=a)))["activations"] for a in ("flash", "eager"))
    assert eager > flash


def test_an_lstm_keeps_its_gates() -> None:
    trace = zoo_model("gnmt").trace(Recipe(2))
    assert any(name.endswith("#saved") for name in lifetimes(trace).names)


def test_a_gradient_passed_on_in_place_lives_to_the_first_block() -> None:
    """Nothing but low-rank updates is trained: the residual's gradient is one storage from the head to the front."""
    trace = zoo_model("gpt2", (32,)).trace(Recipe(4, lora=8, precision="bf16"))
    lives = lifetimes(trace)
    residual = lives.names.index("grad:transformer.h.11.add/out1")
    assert trace.layers[trace.entries[lives.last[residual]]].startswith("transformer.h.0.")


KEPT = (Role.PARAMETERS, Role.GRADIENTS, Role.OPTIMIZER_STATE)  # masters are part of the optimizer's state
SOME = frozenset(product(("momentum", "adamw", "adamw8bit"), ("foreach", "fused"), ("fp32", "amp_fp16", "bf16_master")))


@pytest.mark.parametrize("network", ["two layers", "resnet18", "gpt2", "lstm"])
def test_compiling_removes_no_parameter_gradient_state_or_master(network: str) -> None:
    lost = []
    for case in sorted(product(OPTIMIZERS, STYLES, PRECISIONS) if network == "two layers" else SOME):
        optimizer, style, precision = case
        recipe = Recipe(2, optimizer=optimizer, update_style=style, precision=precision)
        eager = trace_from(two_layers, recipe) if network == "two layers" else zoo_model(network).trace(recipe)
        for compiler in COMPILERS:
            compiled = eager.under(replace(recipe, compile=compiler))
            if _kept(compiled) != _kept(eager):
                lost.append((*case, compiler))
    assert lost == []


def _kept(trace: Trace) -> list[float]:
    """Bytes that stay by role, and bytes that the update moves."""
    lives = lifetimes(trace)
    return [*map(lives.total_bytes, KEPT), float(trace.columns.bytes[trace.in_phase(UPDATE)].sum())]
