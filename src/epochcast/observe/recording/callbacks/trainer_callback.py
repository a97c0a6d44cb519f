"""Hugging Face Trainer: `Trainer(callbacks=[TrainerTracking(job="mine")])`.

A step is a step of the optimizer, as the trainer counts them. The trainer reports when an evaluation or a checkpoint is
over: it lasted since the step before.
"""

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from epochcast.observe.recording.callbacks.callback_options import Recording

# Where the base class is, and the extra that installs it.
BASES, EXTRA = ("transformers:TrainerCallback",), "hf"


class TrainerHooks(Recording):
    """Records a `train`."""

    _ready_at = 0.0
    _data_seconds = 0.0
    _loss: float | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """A training before that was interrupted ends here."""
        if self.run is not None:
            self.run.close("interrupted")
        total = state.max_steps if state.max_steps > 0 else None
        epochs = state.num_train_epochs or None
        self.run = self.options.begin(
            is_first_rank=state.is_world_process_zero, total=total, epochs=epochs, start=state.global_step
        )
        self._ready_at = perf_counter()

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The batch is there: what passed since the last step was waiting for it."""
        self._data_seconds = perf_counter() - self._ready_at

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """As many steps as the trainer counts."""
        self._reached(state, self._data_seconds)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        """The loss is reported only here, and goes with the next step."""
        self._loss = (logs or {}).get("loss", self._loss)

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Over."""
        self._paused("validation")

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Over."""
        self._paused("checkpoint")

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Before its evaluation."""
        self._reached(state)
        if self.run is not None:
            self.run.epoch()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Also where it stopped early."""
        self._reached(state)
        if self.run is not None:
            self.run.close()
            self.run = None

    def _reached(self, state: Any, data_seconds: float | None = None) -> None:
        """The steps that the trainer has counted and this has not."""
        if self.run is not None and state.global_step > self.run.steps:
            self.run.step(state.global_step - self.run.steps, loss=self._loss, data_seconds=data_seconds)
            self._ready_at = perf_counter()

    def _paused(self, what: str) -> None:
        if self.run is not None:
            self.run.paused(what, self._ready_at)
            self._ready_at = perf_counter()


HOOKS = TrainerHooks
