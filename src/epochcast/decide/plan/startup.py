"""From the order of a machine to the first step: it boots, pulls the image, and copies the data.

    image seconds = IMAGE_BYTES / IMAGE_BYTES_PER_SECOND
    data seconds = bytes of the dataset / DATA_BYTES_PER_SECOND

All are assumptions that a user may replace, and every answer calls them so. Every machine copies the whole dataset, at
the same time as the others.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any

# Boot: assumption. Hao et al., An Empirical Analysis of VM Startup Times in Public IaaS Clouds, arXiv:2107.03467, found
# that it varies with image, type and region; sellers of GPUs say from under one minute to several.
BOOT_SECONDS = 120.0
# Image: assumption, a compressed image with CUDA and a framework. The rate to pull and unpack it follows from a
# published "10-15 minutes to start a new instance" with an image of 15 GB
# (tensorfuse.io/blog/gpu-containers-cold-start, September 2024), less the boot: 19 to 31 MB/s.
IMAGE_BYTES, IMAGE_BYTES_PER_SECOND = 5e9, 25e6
# Data: assumption. Object storage gives 85 to 90 MB/s per connection (Amazon S3 user guide, performance guidelines);
# a copy with several connections is taken as 200 MB/s.
DATA_BYTES_PER_SECOND = 200e6
STARTUP = ("boot_seconds", "image_seconds", "data_seconds")


def startup_of(
    boot_seconds: float | None, image_seconds: float | None, data_seconds: float | None, data_bytes: float | None
) -> Mapping[str, Any]:
    """The three times as given, else as assumed in whole seconds. Data of unknown size takes none; a note says so."""
    copy_seconds = float(ceil((data_bytes or 0.0) / DATA_BYTES_PER_SECOND))
    return {
        "boot_seconds": BOOT_SECONDS if boot_seconds is None else boot_seconds,
        "image_seconds": IMAGE_BYTES / IMAGE_BYTES_PER_SECOND if image_seconds is None else image_seconds,
        "data_seconds": copy_seconds if data_seconds is None else data_seconds,
    }
