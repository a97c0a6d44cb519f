"""A generated folder of JPEG files as a data set, decoded and augmented as ImageNet usually is.

Files are 500×375 (ImageNet's mean is near that) of smooth colour with noise, about 60 kB each. A sample is decoded, cut
to a random rectangle (8 … 100 % of the picture), scaled to 224×224, mirrored at random and normalised, all by Pillow
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
    """A map-style data set of `length` samples; the files of the folder repeat."""

    def __init__(self, folder: Path, length: int = 100_000, crop: int = CROP) -> None:
        self.paths = sorted(folder.glob("*.jpg"))
        if not self.paths:
            raise BadInput(f"no .jpg files in {str(folder)!r}")
        self.length, self.crop = length, crop

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Any, int]:
        import torch

        if not 0 <= index < self.length:
            raise IndexError(index)
        random = np.random.default_rng(index)
        with _pillow().open(self.paths[index % len(self.paths)]) as file:
            picture = file.convert("RGB")
        width, height = picture.size
        scale = np.sqrt(random.uniform(0.08, 1.0))
        crop_width, crop_height = max(1, int(scale * width)), max(1, int(scale * height))
        left, top = int(random.integers(0, width - crop_width + 1)), int(random.integers(0, height - crop_height + 1))
        cropped = picture.resize(
            (self.crop, self.crop), box=(left, top, left + crop_width, top + crop_height), resample=2
        )
        values = np.asarray(cropped, dtype=np.float32).transpose(2, 0, 1) / 255
        if random.random() < 0.5:
            values = values[:, :, ::-1]
        return torch.from_numpy(np.ascontiguousarray((values - 0.45) / 0.226)), index % 1000

    @property
    def stored_bytes(self) -> float:
        """Mean size of a file."""
        return float(np.mean([path.stat().st_size for path in self.paths]))


@contextmanager
def jpeg_folder(files: int = FILES) -> Iterator[JpegFolder]:
    """A generated data set, deleted afterwards."""
    with TemporaryDirectory(prefix="epochcast-jpegs-") as folder:
        write_jpegs(Path(folder), files)
        yield JpegFolder(Path(folder))


def write_jpegs(folder: Path, files: int = FILES, size: tuple[int, int] = SIZE) -> None:
    """Write pictures of smooth colour with noise; always the same ones."""
    pillow = _pillow()
    random = np.random.default_rng(0)
    width, height = size
    for index in range(files):
        coarse_colours = random.integers(0, 256, (9, 12, 3), dtype=np.uint8)
        smooth = np.asarray(pillow.fromarray(coarse_colours).resize((width, height), resample=3), dtype=np.float32)
        noise = random.normal(0, 14, (height, width, 3))
        pixels = np.clip(smooth + noise, 0, 255).astype(np.uint8)
        pillow.fromarray(pixels).save(folder / f"{index:04}.jpg", quality=85)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise BadInput("decoding JPEG files needs Pillow; install it, or name your own loader") from None
    return Image
