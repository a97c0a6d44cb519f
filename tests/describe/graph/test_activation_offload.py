from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.activation_offload import offloaded_bytes
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.predict.memory.peak import peak_memory

TINY = zoo_model("tinyllama_1_1b", (128,))
STREAM = 2 * 128 * 2048 * 2
"""Bytes of the residual stream of two samples in bf16."""


def trace(*, is_offloaded: bool, checkpointing: bool = True) -> Trace:
    return TINY.trace(Recipe(2, "sgd", "bf16", checkpointing=checkpointing, offload_activations=is_offloaded))


def test_with_checkpointing_the_inputs_of_blocks_leave() -> None:
    """22 blocks read the stream of the one before; the last norm reads one, too, in two formats."""
    moved = offloaded_bytes(trace(is_offloaded=True).ops)
    assert 22 * STREAM <= moved <= 27 * STREAM


def test_saved_activations_are_not_on_the_device_between_forward_and_backward() -> None:
    whole, moved = (peak_memory(trace(is_offloaded=each, checkpointing=False)) for each in (False, True))
    assert moved.timeline.live_bytes["activations"].max() < 0.5 * whole.timeline.live_bytes["activations"].max()
    assert moved.allocated_bytes < whole.allocated_bytes


def test_the_same_work_is_done() -> None:
    assert trace(is_offloaded=True).flops == trace(is_offloaded=False).flops
    assert offloaded_bytes(trace(is_offloaded=False).ops) == 0
