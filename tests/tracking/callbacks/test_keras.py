"""The callback in a real `fit`."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

keras = pytest.importorskip("keras")

Recorded = Callable[[], Any]


@pytest.fixture(scope="module")
def model() -> Any:
    built = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    built.compile("sgd", "mse")
    return built


def fit(model: Any, path: Path, **options: Any) -> None:
    from epochcast.tracking.callbacks import KerasTracking

    inputs, truths = np.zeros((40, 4), "float32"), np.zeros((40, 1), "float32")
    callback = KerasTracking("mine", to=path / "run.jsonl")
    others = options.pop("callbacks", [])
    model.fit(inputs, truths, batch_size=8, verbose=0, callbacks=[callback, *others], **options)


def test_steps_epochs_and_validation_are_recorded(model: Any, tmp_path: Path, recorded: Recorded) -> None:
    held = np.zeros((8, 4), "float32"), np.zeros((8, 1), "float32")
    fit(model, tmp_path, epochs=3, validation_data=held)
    found = recorded()
    head, last = found.heads[-1], found.rows[-1]
    assert (head["total_steps"], head["total_epochs"], head["steps_per_epoch"]) == (15, 3, 5)
    assert (last["ec"], last["step"], last["epoch"], found.steps) == ("end", 15, 3.0, 15)
    assert found.pauses("validation") == [5, 10, 15]
    assert any("loss" in row for row in found.rows)


def test_a_training_that_goes_on_counts_from_where_it_was(model: Any, tmp_path: Path, recorded: Recorded) -> None:
    fit(model, tmp_path, epochs=3, initial_epoch=1)
    found = recorded()
    assert found.heads[0]["start_step"] == 5 and found.rows[-1]["step"] == 15


def test_a_training_that_stops_early_has_ended(model: Any, tmp_path: Path, recorded: Recorded) -> None:
    class Stop(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.model.stop_training = True

    fit(model, tmp_path, epochs=9, callbacks=[Stop()])
    assert (recorded().rows[-1]["ec"], recorded().rows[-1]["step"]) == ("end", 5)


def test_the_length_of_an_epoch_that_nobody_knows_is_learned(model: Any, tmp_path: Path, recorded: Recorded) -> None:
    from epochcast.tracking.callbacks import KerasTracking

    def endless() -> Any:
        for _ in range(8):
            yield np.zeros((8, 4), "float32"), np.zeros((8, 1), "float32")

    model.fit(endless(), epochs=1, verbose=0, callbacks=[KerasTracking(to=tmp_path / "run.jsonl")])
    assert recorded().heads[-1]["steps_per_epoch"] == 8


def test_an_interrupted_fit_is_closed_by_the_next(model: Any, tmp_path: Path, recorded: Recorded) -> None:
    from epochcast.tracking.callbacks import KerasTracking

    class Break(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if epoch == 1:
                raise KeyboardInterrupt

    tracking = KerasTracking(to=tmp_path / "run.jsonl")
    inputs, truths = np.zeros((8, 4), "float32"), np.zeros((8, 1), "float32")
    with pytest.raises(KeyboardInterrupt):
        model.fit(inputs, truths, epochs=3, verbose=0, callbacks=[tracking, Break()])
    model.fit(inputs, truths, verbose=0, callbacks=[tracking])
    assert [row["ec"] for row in recorded().rows if row["ec"] in ("end", "stopped")] == ["stopped", "end"]


def test_a_callback_can_be_sent_to_another_process_before_it_is_used() -> None:
    from epochcast.tracking.callbacks import KerasTracking

    assert pickle.loads(pickle.dumps(KerasTracking("mine"))).given.job == "mine"


def test_keras_may_go_on_without_waiting_for_it() -> None:
    from keras.src.callbacks.callback_list import CallbackList

    from epochcast.tracking.callbacks import KerasTracking

    alone = CallbackList([], add_history=False)
    assert CallbackList([KerasTracking()], add_history=False)._async_train == alone._async_train
