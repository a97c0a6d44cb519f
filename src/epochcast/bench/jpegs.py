"""A folder of JPEG files as a data set, for who has none at hand: decoded and augmented as ImageNet is.

Files are 500×375 (ImageNet's mean is near that) of smooth colour with grain, about 60 kB each. A sample is decoded, cut
to a random rectangle (8 … 100 % of the picture), scaled to 224×224, mirrored by chance and normalised, all by Pillow
and numpy.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from epochcast.errors import BadInput

FILES = 64
SIZE = (500, 375)
CROP = 224


class JpegFolder:
    """A map-style data set of length `length` over the folder's files, again and again."""

    def __init__(self, folder: Path, length: int = 100_000, crop: int = CROP) -> None:
        self.paths = sorted(folder.glob("*.jpg"))
        if not self.paths:
            raise BadInput(f"no .jpg files in {str(folder)!r}")
        self.length, self.crop = length, crop

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, place: int) -> tuple[Any, int]:
        import torch

        if not 0 <= place < self.length:
            raise IndexError(place)
        chance = np.random.default_rng(place)
        with _pillow().open(self.paths[place % len(self.paths)]) as file:
            picture = file.convert("RGB")
        width, height = picture.size
        scale = np.sqrt(chance.uniform(0.08, 1.0))
        wide, high = max(1, int(scale * width)), max(1, int(scale * height))
        left, top = int(chance.integers(0, width - wide + 1)), int(chance.integers(0, height - high + 1))
        small = picture.resize((self.crop, self.crop), box=(left, top, left + wide, top + high), resample=2)
        values = np.asarray(small, dtype=np.float32).transpose(2, 0, 1) / 255
        if chance.random() < 0.5:
            values = values[:, :, ::-1]
        return torch.from_numpy(np.ascontiguousarray((values - 0.45) / 0.226)), place % 1000

    @property
    def stored_bytes(self) -> float:
        """Mean size of a file."""
        return float(np.mean([path.stat().st_size for path in self.paths]))


@contextmanager
def jpeg_folder(files: int = FILES) -> Iterator[JpegFolder]:
    """A generated data set, gone afterwards."""
    with TemporaryDirectory(prefix="epochcast-jpegs-") as folder:
        write_jpegs(Path(folder), files)
        yield JpegFolder(Path(folder))


def write_jpegs(folder: Path, files: int = FILES, size: tuple[int, int] = SIZE) -> None:
    """Pictures of smooth colour with grain; the same ones every time."""
    pillow = _pillow()
    chance = np.random.default_rng(0)
    width, height = size
    for place in range(files):
        coarse = chance.integers(0, 256, (9, 12, 3), dtype=np.uint8)
        smooth = np.asarray(pillow.fromarray(coarse).resize((width, height), resample=3), dtype=np.float32)
        grain = chance.normal(0, 14, (height, width, 3))
        pixels = np.clip(smooth + grain, 0, 255).astype(np.uint8)
        pillow.fromarray(pixels).save(folder / f"{place:04}.jpg", quality=85)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise BadInput("decoding JPEG files needs Pillow; install it, or name your own loader") from None
    return Image
