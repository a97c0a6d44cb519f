"""How many steps a run has in all: given, announced by the log, or inferred from its epochs."""

from dataclasses import dataclass
from math import inf

from epochcast.errors import BadInput
from epochcast.observe.runs.run_history import History


@dataclass(frozen=True, slots=True)
class Total:
    """Steps in all, in the unit of the log (steps, or epochs where it counts nothing else), and the source of that."""

    steps: float
    source: str
    is_inferred: bool = True
    """Whether neither the user nor the log gives it directly."""


def check_total(history: History, total: float) -> None:
    """Refuse a given total below the step that the log has reached; the message says which total would do.

    A number that may count epochs is offered in steps.
    """
    if not 0 < total < history.step:
        return
    reached = f"`total` {total:.10g}: the log has already reached step {history.step:.10g}"
    if history.steps_per_epoch and (history.epoch or 0) <= total:
        steps = total * history.steps_per_epoch
        raise BadInput(
            f"{reached}; for {total:.10g} epochs of {history.steps_per_epoch:.10g} steps give `epochs` {total:.10g} "
            f"or `total` {steps:.0f}"
        )
    if history.total_steps and history.total_steps >= history.step:
        raise BadInput(f"{reached} of {history.total_steps:.10g}; leave `total` out")
    is_epochs = history.epoch is not None and history.epoch <= total
    counted = f", or `epochs` {total:.10g}" if is_epochs else ""
    raise BadInput(f"{reached}; give the number of steps in all{counted}")


def total_of(history: History, total: float | None = None, epochs: float | None = None) -> Total:
    """The total; raises where neither the user nor the log gives it. `epochs` are as the user gives them."""
    if epochs is not None and total is None:
        return _of_epochs(history, epochs)
    if total is not None:
        if not 0 < total < inf:
            raise BadInput(f"`total` must be a number above 0, got {total:g}")
        return Total(total, "given", is_inferred=False)
    if history.total_steps:
        return Total(history.total_steps, "the log", is_inferred=False)
    epochs = history.total_epochs
    if epochs and history.steps_per_epoch:
        return Total(epochs * history.steps_per_epoch, f"{epochs:g} epochs of {history.steps_per_epoch:g} steps")
    if epochs and (history.epoch is None or abs(history.step - history.epoch) <= 1):
        return Total(epochs, f"{epochs:g} epochs")
    if epochs and history.epoch and history.epoch >= 1:
        per_epoch = history.step / history.epoch
        return Total(epochs * per_epoch, f"{epochs:g} epochs of about {per_epoch:.4g} steps")
    counted = f"step {history.step:g}" + ("" if history.epoch is None else f", epoch {history.epoch:g}")
    raise BadInput(f"the log does not say how many steps there are in all (it is at {counted}); give `total`")


def _of_epochs(history: History, epochs: float) -> Total:
    """Given epochs, in the unit of the log."""
    if not 0 < epochs < inf:
        raise BadInput(f"`epochs` must be a number above 0, got {epochs:g}")
    if history.epoch is not None and abs(history.step - history.epoch) <= 1:
        return Total(epochs, "given", is_inferred=False)
    if history.steps_per_epoch:
        steps = epochs * history.steps_per_epoch
        return Total(steps, f"{epochs:g} epochs of {history.steps_per_epoch:g} steps", is_inferred=False)
    if history.epoch and history.epoch > 0:
        per_epoch = history.step / history.epoch
        return Total(epochs * per_epoch, f"{epochs:g} epochs of about {per_epoch:.4g} steps")
    raise BadInput(
        f"the log does not say how many steps an epoch has (it is at step {history.step:g}); give `total`, the number "
        "of steps in all"
    )
