import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.capture.zoo import zoo_model
from epochcast.graph.build import Builder
from epochcast.graph.op import Graph
from epochcast.graph.recipe import Recipe
from epochcast.graph.trace import trace_from
from epochcast.memory.floor import MemoryFloor, memory_floor

RESNET = zoo_model("resnet18")


def two_layers(batch: int) -> Graph:
    """5 → 7 → relu → 3, no biases: weights of 35 and 21."""
    b = Builder("two", batch)
    x = b.linear(b.input("x", (5,)), 7, bias=False, name="one")
    return b.finish(b.linear(b.relu(x, name="relu"), 3, bias=False, name="two"), loss="none")


def floor(recipe: Recipe) -> MemoryFloor:
    return memory_floor(trace_from(two_layers, recipe))


# Forward, batch 2, words: the input 10 stays. Layer one's output 14 dies once relu has made its 14; then relu's 14 and
# the result 6. Most at once: 10 + 14 + 14.
def test_forward_by_hand() -> None:
    found = floor(Recipe(2, mode="forward"))
    assert found == MemoryFloor(4 * 56, 0, 0, 4 * (10 + 14 + 14), "relu/out")


# Backward: relu's output is kept for the weight gradient of two and for relu itself. At relu's backward: input 10,
# relu's output 14, the arriving and the leaving gradient 14 each, the given gradient of the result 6: less than the
# update, where the input and the given gradient are still there and all square roots are temporaries.
def test_training_by_hand() -> None:
    found = floor(Recipe(2, optimizer="adam", mode="training"))
    assert found.parameter_bytes == 4 * 56
    assert found.state_bytes == 2 * 4 * 56
    assert found.peak_op == "adam.3.sqrt"  # the square roots of all parameters are the largest temporary here
    assert found.gradient_bytes == 4 * 56
    assert found.activation_bytes == 4 * (10 + 6 + 56)


@pytest.mark.parametrize(("optimizer", "state"), [("sgd", 0), ("momentum", 1), ("adam", 2), ("rmsprop", 1)])
def test_state_is_a_multiple_of_the_parameters(optimizer: str, state: int) -> None:
    found = floor(Recipe(2, optimizer=optimizer))
    assert found.state_bytes == state * found.parameter_bytes


@given(batch=st.integers(1, 200), more=st.integers(1, 200))
def test_the_floor_holds_the_weights_and_grows_with_the_batch(batch: int, more: int) -> None:
    small, large = (memory_floor(RESNET.trace(Recipe(n))) for n in (batch, batch + more))
    assert 4 * 11_689_512 == small.parameter_bytes < small.peak_bytes < large.peak_bytes


def test_parts_sum_to_the_peak() -> None:
    found = memory_floor(RESNET.trace(Recipe(8, optimizer="adam")))
    parts = found.parameter_bytes + found.gradient_bytes + found.state_bytes + found.activation_bytes
    assert parts == found.peak_bytes


def test_a_forward_pass_needs_less_than_training() -> None:
    def peak(mode: str) -> int:
        return memory_floor(RESNET.trace(Recipe(32, mode=mode))).peak_bytes

    assert peak("forward") < peak("forward_backward") <= peak("training")


def test_frozen_layers_keep_no_activations_gradients_or_state() -> None:
    whole = memory_floor(RESNET.trace(Recipe(32, optimizer="adam")))
    head = memory_floor(RESNET.trace(Recipe(32, optimizer="adam", freeze=("conv1*", "bn1*", "layer*"))))
    assert head.parameter_bytes == whole.parameter_bytes
    assert head.state_bytes == 2 * 4 * (512 * 1000 + 1000)
    assert head.activation_bytes < whole.activation_bytes / 3


def test_pure_half_halves_everything() -> None:
    single, half = (memory_floor(RESNET.trace(Recipe(32, optimizer="adam", precision=p))) for p in ("fp32", "bf16"))
    assert half.parameter_bytes == single.parameter_bytes // 2
    assert half.state_bytes == single.state_bytes // 2
    assert half.peak_bytes == pytest.approx(single.peak_bytes / 2, rel=0.1)  # pooling indices stay whole numbers


def test_autocast_keeps_full_weights_and_saves_on_activations() -> None:
    single, mixed = (memory_floor(RESNET.trace(Recipe(64, precision=p))) for p in ("fp32", "amp"))
    assert mixed.parameter_bytes == single.parameter_bytes
    assert mixed.activation_bytes < single.activation_bytes


def test_accumulated_gradients_are_there_from_the_start() -> None:
    once, again = (memory_floor(RESNET.trace(Recipe(32, accumulate=n))) for n in (1, 4))
    assert again.gradient_bytes == again.parameter_bytes > once.gradient_bytes
    assert again.peak_bytes > once.peak_bytes


def test_eager_attention_needs_its_scores() -> None:
    vit = zoo_model("vit_ti_16")
    flash, eager = (memory_floor(vit.trace(Recipe(32, attention=a))).peak_bytes for a in ("flash", "eager"))
    assert eager > flash
