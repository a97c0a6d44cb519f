"""Keras: `model.fit(…, callbacks=[KerasTracking(job="mine")])`, on whichever backend.

A step is a batch. Validation is what runs between `on_test_begin` and `on_test_end`. Keras does not tell when a model
is saved: a checkpoint is in the time of the step behind it.

Keras reports the ends of batches from a pool of threads, so that they come late and in any order: the highest number
counts, and one that comes late changes nothing. It waits for all of them before the end of an epoch, not before a
validation. Beginnings of batches come in order, and a batch that has begun has ended when the validation begins. Where
nobody knows the length of an epoch, the last beginning may be of a batch that was not there, and is left out.
"""

from collections.abc import Mapping
from threading import RLock
from typing import Any

from epochcast.observe.recording.callbacks.callback_options import Recording

# Where the base class is, and the extra that installs it.
BASES, EXTRA = ("keras.callbacks:Callback",), "keras"


class KerasHooks(Recording):
    """Records a `fit`."""

    params: dict[str, Any]  # Keras sets them
    model: Any

    # Keras calls other callbacks from a thread, without waiting for them, only where all say that they can bear it.
    async_safe = True

    _lock: Any = None
    _batch = _begun = -1

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """A `fit` before that was interrupted ends here."""
        if self.run is not None:
            self.run.close("interrupted")
        self.run, self._lock = None, RLock()

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """The first one says where a resumed training stands."""
        self._batch = self._begun = -1
        if self.run is not None:
            return
        epochs, steps = self.params.get("epochs"), self.params.get("steps")
        total = epochs * steps if epochs and steps else None
        self.run = self.options.begin(total=total, epochs=epochs, start=epoch * (steps or 0))

    def on_train_batch_begin(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """The first of several steps where Keras runs them at once (`steps_per_execution`)."""
        self._begun = batch

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """The last of several steps where Keras runs them at once."""
        if self.run is not None:
            with self._lock:
                self._reached(batch, (logs or {}).get("loss"))

    def _reached(self, batch: int, loss: object = None) -> None:
        if self.run is not None and batch > self._batch:
            self.run.step(batch - self._batch, loss=loss)
            self._batch = batch

    def _reach_begun(self) -> None:
        """Every batch that has begun has ended; where nobody knows how many there are, all but the last."""
        if not self.params.get("steps"):
            self._reached(self._begun - 1)
        elif self._begun >= 0:
            at_once = int(getattr(self.model, "steps_per_execution", 1) or 1)
            self._reached(min(self._begun + at_once, int(self.params["steps"])) - 1)

    def on_test_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Validation within a `fit`."""
        if self.run is not None:
            with self._lock:
                self._reach_begun()
                self.run.begin("validation")

    def on_test_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Steps again."""
        if self.run is not None:
            with self._lock:
                self.run.done()

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """After its validation."""
        if self.run is None:
            return
        with self._lock:
            self._reach_begun()
            self.run.epoch()
            epochs, steps = self.run.start.total_epochs, self.run.start.steps_per_epoch
            if self.run.start.total_steps is None and epochs and steps:
                self.run.announce(total_steps=epochs * steps)

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Also where a callback stopped it early."""
        if self.run is not None:
            with self._lock:
                self.run.close()
                self.run = None


HOOKS = KerasHooks
