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
    from epochcast.callbacks import KerasTracking

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
    from epochcast.callbacks import KerasTracking

    def endless() -> Any:
        for _ in range(8):
            yield np.zeros((8, 4), "float32"), np.zeros((8, 1), "float32")

    model.fit(endless(), epochs=1, verbose=0, callbacks=[KerasTracking(to=tmp_path / "run.jsonl")])
    assert recorded().heads[-1]["steps_per_epoch"] == 8


def test_an_interrupted_fit_is_closed_by_the_next(model: Any, tmp_path: Path, recorded: Recorded) -> None:
    from epochcast.callbacks import KerasTracking

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


def begun(path: Path, steps: int | None) -> Any:
    from epochcast.callbacks import KerasTracking

    tracking = KerasTracking("mine", to=path / "run.jsonl")
    tracking.set_params({"epochs": 1, "steps": steps})
    tracking.on_train_begin()
    tracking.on_epoch_begin(0)
    return tracking


def ended(tracking: Any) -> None:
    tracking.on_epoch_end(0)
    tracking.on_train_end()


@pytest.mark.parametrize("order", [(0, 1, 2, 4, 3), (4, 3, 2, 1, 0), (0, 2, 1, 3, 4)])
def test_batches_whose_ends_come_in_any_order_are_all_counted(
    order: tuple[int, ...], tmp_path: Path, recorded: Recorded
) -> None:
    """Keras reports them from a pool of threads."""
    tracking = begun(tmp_path, steps=5)
    for batch in order:
        tracking.on_train_batch_end(batch, {"loss": 1.0})
    ended(tracking)
    found = recorded()
    assert (found.rows[-1]["ec"], found.rows[-1]["step"], found.steps) == ("end", 5, 5)
    assert all(row["steps"] > 0 for row in found.rows if row["ec"] == "train")


def test_a_batch_whose_end_comes_during_validation_was_before_it(tmp_path: Path, recorded: Recorded) -> None:
    tracking = begun(tmp_path, steps=3)
    for batch in range(3):
        tracking.on_train_batch_begin(batch)
    tracking.on_train_batch_end(0, {"loss": 1.0})
    tracking.on_test_begin()
    tracking.on_train_batch_end(2, {"loss": 1.0})
    tracking.on_train_batch_end(1, {"loss": 1.0})
    tracking.on_test_end()
    ended(tracking)
    found = recorded()
    assert [row["step"] for row in found.rows if row["ec"] == "begin"] == found.pauses("validation") == [3]
    assert (found.rows[-1]["step"], found.steps) == (3, 3)


def test_a_batch_that_was_not_there_is_not_counted(tmp_path: Path, recorded: Recorded) -> None:
    """Keras finds the end of data of unknown length after it has begun one more batch."""
    tracking = begun(tmp_path, steps=None)
    for batch in range(3):
        tracking.on_train_batch_begin(batch)
        tracking.on_train_batch_end(batch, {"loss": 1.0})
    tracking.on_train_batch_begin(3)
    tracking.on_test_begin()
    tracking.on_test_end()
    ended(tracking)
    assert (recorded().rows[-1]["step"], recorded().steps) == (3, 3)


def test_the_last_step_is_recorded_where_no_row_is_due(tmp_path: Path, recorded: Recorded, standstill: None) -> None:
    tracking = begun(tmp_path, steps=15)
    for batch in range(15):
        tracking.on_train_batch_end(batch, {"loss": 1.0})
    ended(tracking)
    found = recorded()
    assert [row["step"] for row in found.rows if row["ec"] == "train"] == [1, 15]
    assert (found.rows[-1]["ec"], found.rows[-1]["step"], found.steps) == ("end", 15, 15)


def test_a_callback_can_be_sent_to_another_process_before_it_is_used() -> None:
    from epochcast.callbacks import KerasTracking

    assert pickle.loads(pickle.dumps(KerasTracking("mine"))).options.job == "mine"


def test_keras_may_go_on_without_waiting_for_it() -> None:
    from keras.src.callbacks.callback_list import CallbackList

    from epochcast.callbacks import KerasTracking

    alone = CallbackList([], add_history=False)
    assert CallbackList([KerasTracking()], add_history=False)._async_train == alone._async_train
