"""Lightning: `Trainer(callbacks=[LightningTracking(job="mine")])`, of `lightning.pytorch` or `pytorch_lightning`.

A step is a batch, also where gradients are accumulated. A checkpoint lasts from when Lightning gathers its state until
the next thing that it does.
"""

from math import isfinite
from time import perf_counter
from typing import Any

from epochcast.observe.recording.callbacks.callback_options import Recording
from epochcast.observe.recording.recorded_rows import reason_of

# The same library under two names; a callback of one is taken by the other.
BASES, EXTRA = ("lightning.pytorch:Callback", "pytorch_lightning:Callback"), "lightning"


class LightningHooks(Recording):
    """Records a `fit`."""

    _ready_at = 0.0
    _saving_at: float | None = None
    _data_seconds = 0.0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """After the sanity check."""
        done = trainer.fit_loop.epoch_loop.total_batch_idx + 1
        total, epochs = _totals(trainer)
        self.run = self.options.begin(is_first_rank=trainer.is_global_zero, total=total, epochs=epochs, start=done)
        self._ready_at = perf_counter()

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """The batch is there: what passed since the last step was waiting for it."""
        self._saved()
        self._data_seconds = perf_counter() - self._ready_at

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """A step."""
        if self.run is not None:
            loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
            self.run.step(loss=loss, data_seconds=self._data_seconds)
            self._ready_at = perf_counter()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Not the sanity check: there is no run yet."""
        self._saved()
        if self.run is not None:
            self.run.begin("validation")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Steps again, or a checkpoint."""
        self._saved()
        if self.run is not None:
            self.run.done()
            self._ready_at = perf_counter()

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Any) -> None:
        """Its state is gathered, before it is written."""
        if self.run is not None and self._saving_at is None:
            self._saving_at = perf_counter()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """After its validation."""
        self._saved()
        if self.run is not None:
            self.run.epoch()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Also where it stopped early."""
        self._saved()
        if self.run is not None:
            self.run.close()
            self.run = None

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """What was recorded is kept."""
        if self.run is not None:
            self.run.close(reason_of(exception))
            self.run = None

    def _saved(self) -> None:
        if self._saving_at is not None and self.run is not None:
            self.run.paused("checkpoint", self._saving_at)
            self._ready_at = perf_counter()
        self._saving_at = None


def _totals(trainer: Any) -> tuple[float | None, float | None]:
    """Batches and epochs in all, as far as the trainer knows them."""
    batches, epochs, steps = trainer.num_training_batches, trainer.max_epochs, trainer.max_steps
    by_epochs = batches * epochs if epochs and epochs > 0 and isfinite(batches) else None
    by_steps = steps * trainer.accumulate_grad_batches if steps and steps > 0 else None
    totals = [total for total in (by_epochs, by_steps) if total]
    total = min(totals) if totals else None
    if total is None or not isfinite(batches) or not batches:
        return total, epochs if epochs and epochs > 0 else None
    return total, total / batches


HOOKS = LightningHooks
