"""Keras on TensorFlow, by `fit`."""

import os
import time
from pathlib import Path
from typing import Any

from studies.trainings.cases import Training
from studies.trainings.happenings import Happenings
from studies.trainings.models import BATCH


def run(training: Training, folder: Path, steps_given: int | None) -> int:
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    import keras
    import numpy as np

    from epochcast.callbacks import KerasTracking

    keras.utils.set_random_seed(0)
    shape = (32, 32, 3) if training.model == "cnn" else (784,)
    convs = [keras.layers.Conv2D(n, 3, activation="relu", padding="same", strides=2) for n in (32, 64, 64)]
    flat = [keras.layers.Dense(1024, activation="relu") for _ in range(2)]
    body = [*convs, keras.layers.GlobalAveragePooling2D()] if training.model == "cnn" else flat
    model = keras.Sequential([keras.Input(shape), *body, keras.layers.Dense(10)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    generator = np.random.default_rng(0)
    inputs = generator.standard_normal((64 * BATCH, *shape), dtype="float32")
    labels = generator.integers(0, 10, 64 * BATCH)
    model.fit(inputs[: 8 * BATCH], labels[: 8 * BATCH], batch_size=BATCH, verbose=0)
    begin = time.perf_counter()
    model.fit(inputs, labels, batch_size=BATCH, verbose=0)
    usual_seconds = (time.perf_counter() - begin) / 64
    steps = steps_given or max(20, int(training.seconds / training.epochs / usual_seconds))
    (folder / "steps").write_text(str(steps), encoding="utf-8")
    happenings = Happenings(training, steps * training.epochs, folder)

    class Happen(keras.callbacks.Callback):  # type: ignore[misc]
        step = 0

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.step += 1
            if not happenings.after(self.step):
                self.model.stop_training = True

    whole = np.arange(steps * BATCH) % len(inputs)
    held = np.arange(training.validation_steps * 2 * BATCH) % len(inputs)
    model.fit(
        inputs[whole],
        labels[whole],
        batch_size=BATCH,
        epochs=training.epochs,
        validation_data=(inputs[held], labels[held]) if training.validation_every else None,
        verbose=1 if training.printer == "verbose1" else 2,
        callbacks=[KerasTracking(training.name, to=folder / "callback.jsonl"), Happen()],
    )
    happenings.over()
    return steps
