"""Which version of a framework a row ran, from the many ways to write it.

1.12 cu113, pytorch-1.8.0a0, torch 2.1.0     PyTorch's own version
20.06-py3, pytorch-22.10-py3                 NVIDIA's container of that month (`container_torch`)
20.06-tf1-py3                                TensorFlow 1.15, the last of its line; tf2: the container's 2.x
1.x (2019-2020)                              the version at the end of the first year (`year_torch`)
v0.6.0 of mmdetection_v1                     the version of a library on top (`detector_rows.PYTORCH`)
v2.0 of a benchmark's round, 2024, a commit  nothing is known: None
"torch 2.4" in the note of a row without one  PyTorch's own version

Where nothing is known, `least_version` says which version the row cannot be older than.
"""

import re
from collections.abc import Iterable, Mapping

from epochcast.measure.tables.detector_rows import PYTORCH
from epochcast.measure.tables.row_names import row_names

Version = tuple[int, int]
_LAST_TENSORFLOW_1 = (1, 15)
_FIRST_TENSORFLOW_2_CONTAINER = (20, 3)
# Containers are named by year and month: no framework has such a major version.
_MONTH = re.compile(r"(?:^|[^\d])(?:20)?(1[7-9]|[23]\d)[.-](0[1-9]|1[0-2])(?!\d)")
_NOTED = re.compile(r"\btorch[ =v]*(\d+)\.(\d+)")
_NUMBERS = re.compile(r"(?:^|(?:torch|pytorch|tensorflow|tf)[ :=-])v?(\d+)\.(\d+)")
# "1.x (2019-2020)": a major version and when it ran.
_YEARS = re.compile(r"^[12]\.x \((20\d\d)(?:-20\d\d)?\)")


def framework_version(source: str, framework: str, words: str) -> Version | None:
    """(major, minor) of the framework whose kernels ran; None where the row does not say."""
    version = PYTORCH.get((source, words))
    if version is not None:
        return version
    lower = words.casefold()
    month = _MONTH.search(lower)
    if month is not None:
        return _container(framework, words, (int(month[1]), int(month[2])))
    numbers = _NUMBERS.search(lower)
    if numbers is not None and not lower.startswith("v"):
        return int(numbers[1]), int(numbers[2])
    years = _YEARS.search(lower)
    if years is not None and "torch" in framework:
        return released_by(int(years[1]))
    usual = row_names()["source_version"].get(source)
    return None if usual is None else _pair(usual)


def noted_version(note: str) -> Version | None:
    """PyTorch's version from a note; None where it names none, or several."""
    versions = {(int(major), int(minor)) for major, minor in _NOTED.findall(note.casefold())}
    return versions.pop() if len(versions) == 1 else None


def least_version(generation: str, features: Iterable[str]) -> Version:
    """The first version that runs on a generation of GPUs and has what a job uses (`least_version` of the list); the
    usual one where neither is known.
    """
    least: Mapping[str, str] = row_names()["least_version"]
    return max(_pair(least[name]) for name in ("usual", generation, *features) if name in least)


def _container(framework: str, words: str, month: Version) -> Version | None:
    if "tensorflow" in framework or re.search(r"-tf\d", words):
        is_first = "tf1" in words or ("tf2" not in words and "tensorflow2" not in framework)
        if is_first or month < _FIRST_TENSORFLOW_2_CONTAINER:
            return _LAST_TENSORFLOW_1
        # A minor version a quarter: 20.06 has TensorFlow 2.2, 22.03 has 2.8.
        year, of_year = month
        return 2, round(2 + ((year - 20) * 12 + of_year - 6) * 0.29)
    released = {_pair(name): _pair(torch) for name, torch in row_names()["container_torch"].items()}
    earlier = [container for container in released if container <= month]
    return released[max(earlier)] if earlier else None


def released_by(year: int) -> Version:
    """PyTorch's version at the end of a year."""
    by_year = row_names()["year_torch"]
    return _pair(by_year[min(by_year, key=lambda other: abs(int(other) - year))])


def _pair(words: str) -> Version:
    major, minor = words.split(".")
    return int(major), int(minor)
