"""Keras networks to bench: convolutions, pools and dense layers, in other sizes than those of the networks forecast.

Built on whatever Keras runs on: TensorFlow where they are measured, torch where they are only read.
"""

from typing import Any


def narrow() -> Any:
    """Small images, few channels."""
    return _network((24, 24, 1), (16, 48, 64), (96, 10))


def wide() -> Any:
    """Larger images, many channels."""
    return _network((64, 64, 3), (128, 192, 256), (256, 2))


def _network(shape: tuple[int, int, int], channels: tuple[int, ...], dense: tuple[int, ...]) -> Any:
    import keras

    layers: list[Any] = [keras.Input(shape)]
    for out in channels:
        layers += [keras.layers.Conv2D(out, 3, padding="same", activation="relu"), keras.layers.MaxPooling2D(2)]
    layers += [keras.layers.Flatten(), keras.layers.Dense(dense[0], activation="relu"), keras.layers.Dense(dense[1])]
    return keras.Sequential(layers)
