"""One step of a real Keras model on TensorFlow: the report's three networks, or the model of a `file.py:factory`.

The step is one `tf.function` of forward, loss, gradient and update, as Keras' own `train_step`. TensorFlow does not
report a peak on the processor, so peak bytes are known on GPUs only.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from epochcast.describe.capture.torch.factory import named_object
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput, MissingExtra, UnknownName

# Input (height, width, channels), channels of the convolutions, their padding, widths of the dense layers.
REPORT_NETWORKS: Mapping[str, tuple[tuple[int, int, int], tuple[int, ...], str, tuple[int, ...]]] = {
    "mnist_cnn": ((28, 28, 1), (32, 32, 32), "valid", (128, 10)),
    "mnist_cnn_2conv": ((28, 28, 1), (32, 32), "valid", (128, 10)),
    "cifar10_cnn": ((32, 32, 3), (64, 64, 32), "valid", (512, 256, 128, 10)),
    "patch_camelyon_cnn": ((96, 96, 3), (256, 256, 512, 512, 1024, 1024), "same", (1028, 512, 128, 1)),
    "patch_camelyon_prefix": ((96, 96, 3), (256, 256, 512), "same", (2,)),
}
OPTIMIZERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "sgd": ("SGD", {}),
    "momentum": ("SGD", {"momentum": 0.9}),
    "nesterov": ("SGD", {"momentum": 0.9, "nesterov": True}),
    "adam": ("Adam", {}),
    "adamw": ("AdamW", {}),
    "rmsprop": ("RMSprop", {}),
    "adagrad": ("Adagrad", {}),
    "adadelta": ("Adadelta", {}),
}
POLICIES = {"fp32": "float32", "amp_fp16": "mixed_float16", "amp_bf16": "mixed_bfloat16", "fp64": "float64"}


def import_keras() -> tuple[Any, Any]:
    """TensorFlow, and Keras on it."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    # torch loads triton late, which crashes if TensorFlow was loaded first; loading triton first avoids it.
    with suppress(ImportError):
        import triton  # noqa: F401
    try:
        import keras
        import tensorflow
    except ModuleNotFoundError as error:
        raise MissingExtra("tensorflow", error.name) from None
    if keras.backend.backend() != "tensorflow":
        raise BadInput(f"Keras runs on {keras.backend.backend()} here; set KERAS_BACKEND=tensorflow")
    return tensorflow, keras


def keras_model(name: str) -> Any:
    """A model of the report, channels last, or the model of a factory."""
    _, keras = import_keras()
    if ":" in name:
        factory: Any = named_object(name)
        return factory() if callable(factory) and not isinstance(factory, keras.Model) else factory
    if name not in REPORT_NETWORKS:
        raise UnknownName("Keras network to train", name, REPORT_NETWORKS)
    shape, channels, padding, dense = REPORT_NETWORKS[name]
    layers: list[Any] = [keras.Input(shape)]
    for out in channels:
        layers += [keras.layers.Conv2D(out, 3, padding=padding, activation="relu"), keras.layers.MaxPooling2D(2)]
    layers.append(keras.layers.Flatten())
    layers += [keras.layers.Dense(out, activation="relu") for out in dense[:-1]]
    layers.append(keras.layers.Dense(dense[-1], activation="sigmoid" if dense[-1] == 1 else None))
    return keras.Sequential(layers, name=name)


class KerasStep:
    """Call it to train one step."""

    def __init__(self, name: str, recipe: Recipe, strategy: Any = None) -> None:
        tensorflow, keras = import_keras()
        if recipe.precision not in POLICIES:
            raise BadInput(f"Keras has no precision {recipe.precision!r}; known: {', '.join(POLICIES)}")
        if recipe.optimizer not in OPTIMIZERS:
            raise BadInput(f"Keras has no optimizer {recipe.optimizer!r}; known: {', '.join(OPTIMIZERS)}")
        previous_policy = keras.mixed_precision.dtype_policy()
        keras.mixed_precision.set_dtype_policy(POLICIES[recipe.precision])
        try:
            self.model = keras_model(name)
            optimizer, options = OPTIMIZERS[recipe.optimizer]
            self.update = getattr(keras.optimizers, optimizer)(**options)
            self.update.build(self.model.trainable_variables)
        finally:
            keras.mixed_precision.set_dtype_policy(previous_policy)
        # TensorFlow says 0 for all cores.
        self.threads = int(tensorflow.config.threading.get_intra_op_parallelism_threads())
        shape = (recipe.batch, *self.model.input_shape[1:])
        self.inputs = tensorflow.random.normal(shape)
        classes = int(self.model.output_shape[-1])
        if classes == 1:
            self.targets = tensorflow.random.uniform((recipe.batch, 1))
            self.loss = keras.losses.BinaryCrossentropy()
        else:
            self.targets = tensorflow.random.uniform((recipe.batch,), 0, classes, dtype=tensorflow.int32)
            self.loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self._run = self._compiled(tensorflow, recipe.mode)

    def _compiled(self, tensorflow: Any, mode: str) -> Callable[[Any, Any], Any]:
        def step(inputs: Any, targets: Any) -> Any:
            if mode == "forward":
                return self.model(inputs, training=True)
            with tensorflow.GradientTape() as tape:
                loss = self.loss(targets, self.model(inputs, training=True))
            gradients = tape.gradient(loss, self.model.trainable_variables)
            if mode == "training":
                self.update.apply(gradients, self.model.trainable_variables)
                return loss
            return gradients

        compiled: Callable[[Any, Any], Any] = tensorflow.function(step)
        return compiled

    def __call__(self) -> None:
        result = self._run(self.inputs, self.targets)
        for tensor in result if isinstance(result, list) else [result]:
            tensor.numpy()  # waits until it is computed
