"""Lifetimes of many networks, kept in the scratch folder: a capture takes seconds, reading it back milliseconds. They
are kept under a digest of the code that makes them, so that a change of the engine is seen.
"""

from functools import cache
from hashlib import blake2b
from pathlib import Path

import numpy as np

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.predict.memory.lifetimes import Lifetimes, lifetimes
from training.examples import scratch
from training.files import PACKAGE

_COLUMNS = ("roles", "fixed_bytes", "sample_bytes", "born", "last")


def kept_lifetimes(reference: str, shape: tuple[int, ...], recipe: Recipe) -> Lifetimes:
    """Gradients are zeroed, not dropped, as PyTorch did by default before 2.0; sums are made in place, as since."""
    path = _path(reference, shape, recipe)
    if path.exists():
        with np.load(path, allow_pickle=False) as arrays:
            columns = {name: arrays[name] for name in _COLUMNS}
            names = ("",) * len(columns["roles"])
            ops = int(arrays["ops"])  # where the update begins matters to ranks that share it out; this is one device
            return Lifetimes(names, ops=ops, keeps_gradients=True, update=ops, **columns)
    lives = lifetimes(find_model(reference, shape).trace(recipe), set_to_none=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".part.npz")
    np.savez_compressed(temporary, ops=lives.ops, **{name: getattr(lives, name) for name in _COLUMNS})
    temporary.replace(path)
    return lives


def _path(reference: str, shape: tuple[int, ...], recipe: Recipe) -> Path:
    parts = [reference.replace(":", "_"), "x".join(map(str, shape)), recipe.precision, recipe.optimizer]
    parts += [recipe.attention, recipe.update_style, "nhwc" if recipe.channels_last else "nchw"]
    return scratch() / ("-".join(["lifetimes", _engine(), *parts]) + ".npz")


@cache
def _engine() -> str:
    """A digest of what decides lifetimes."""
    places = (
        PACKAGE / "describe" / "graph",
        PACKAGE / "describe" / "capture" / "torch",
        PACKAGE / "predict" / "memory",
    )
    texts = (file.read_bytes() for place in places for file in sorted(place.rglob("*.py")))
    return blake2b(b"".join(texts), digest_size=6).hexdigest()
