"""What a step holds in memory."""

from rich.console import RenderableType

from epochcast.forecast.job import Forecast
from epochcast.render.table import table
from epochcast.units import show_bytes


def memory(answer: Forecast) -> RenderableType:
    """What the least memory of a training step holds."""
    held = answer.memory
    rows = [
        ("parameters", show_bytes(held.parameter_bytes)),
        ("gradients", show_bytes(held.gradient_bytes)),
        ("optimizer state", show_bytes(held.state_bytes)),
        ("activations and inputs", show_bytes(held.activation_bytes)),
        ("at least", show_bytes(held.peak_bytes)),
        (f"{answer.placement.device.name} has", show_bytes(answer.placement.device.memory_bytes)),
    ]
    verdict = "fits" if answer.fits else "DOES NOT FIT"
    return table(
        f"memory of a training step at batch {answer.batch_per_gpu}: {verdict}",
        "| >",
        rows,
        caption=f"at its peak, in {held.peak_op}; allocator, workspaces and context come on top",
    )
