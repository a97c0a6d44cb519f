"""Profiles: factors by which a cost model is corrected on a device, from the user's measurements.

Profiles come from `epochcast calibrate --save`, one file per device in the user's data folder (EPOCHCAST_PROFILES names
another).

The factors of a profile multiply what one cost model answers: `relative_to` names it, because every model has
its own errors.

    kernel' = kernel · compute_factor or memory_factor (whichever bound of the roofline is larger) · class_factor
"""

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TypeVar

from epochcast.base import catalogue_rows as rows
from epochcast.base.atomic_files import write_text
from epochcast.base.caching import remembered
from epochcast.base.documents import read_text
from epochcast.base.name_matching import plain
from epochcast.describe.graph.math_modes import MATHS
from epochcast.describe.graph.precision import PRECISIONS, find_precision
from epochcast.errors import BadInput, EpochcastError
from epochcast.hardware.device import Device

Value = TypeVar("Value")


class ProfileWarning(UserWarning):
    """A profile of the user's cannot be read; the answer is the one without it."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One device under one software stack.

    `gemm_fraction` is the part of the peak that large products sustain, by math; `bandwidth_fraction` that of large
    elementwise ops. `step_spread` are the factors low ≤ 1 ≤ high of the 90 % interval of a step. `rows` is the number
    of measurements, `precisions` are those they were made in: a profile says nothing of others. None where unknown.
    """

    device: str
    stack: str
    source: str
    date: str
    rows: int = 0
    relative_to: str = ""
    gemm_fraction: Mapping[str, float] = field(default_factory=dict, hash=False)
    bandwidth_fraction: float | None = None
    launch_seconds: float | None = None
    compute_factor: float = 1.0
    memory_factor: float = 1.0
    class_factor: Mapping[str, float] = field(default_factory=dict, hash=False)
    step_spread: tuple[float, float] | None = None
    precisions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "gemm_fraction", dict(self.gemm_fraction))
        object.__setattr__(self, "class_factor", dict(self.class_factor))
        object.__setattr__(self, "precisions", tuple(find_precision(name).name for name in self.precisions))
        if not (self.device and self.source):
            raise BadInput(f"a profile needs a device and a source, got {self.device!r} and {self.source!r}")
        if self.rows < 0:
            raise BadInput(f"rows must be at least 0, got {self.rows}")
        for math, fraction in self.gemm_fraction.items():
            if math not in MATHS:
                raise BadInput(f"gemm_fraction: no math called {math!r}; known: {', '.join(MATHS)}")
            _check(f"gemm_fraction of {math}", fraction, 1e-3, 1.5)
        if self.bandwidth_fraction is not None:
            _check("bandwidth_fraction", self.bandwidth_fraction, 1e-3, 1.5)
        if self.launch_seconds is not None:
            _check("launch_seconds", self.launch_seconds, 1e-8, 1.0)
        for name, factor in {
            "compute_factor": self.compute_factor,
            "memory_factor": self.memory_factor,
            **{f"class_factor of {name}": factor for name, factor in self.class_factor.items()},
        }.items():
            _check(name, factor, 1e-2, 1e2)
        if self.step_spread is not None:
            low, high = self.step_spread
            if not (0 < low <= 1 <= high and isfinite(high)):
                raise BadInput(f"step_spread must be two factors, low ≤ 1 ≤ high, got {low} and {high}")

    def is_of(self, math: str, *, of_convolutions: bool = False) -> bool:
        """Whether it was measured in a precision whose products, or convolutions, are in this math. Convolutions in
        fp32 are in fp32 or tf32, as the device has it.
        """
        rules = [PRECISIONS[name] for name in self.precisions]
        maths = {each.math for each in rules} | {each.convolution_math for each in rules if of_convolutions}
        return not rules or math in maths


def user_profile(device: Device) -> Profile | None:
    """The profile that `epochcast calibrate --save` wrote for this device on this host, if there is one that can be
    read; another costs a warning.
    """
    path = profile_path(device)
    return unless_unreadable(path, lambda: _profile_in(path, device))


def unless_unreadable(path: Path, read: Callable[[], Value | None]) -> Value | None:
    """What `read` finds in a file of the user's; a file that cannot be used costs a warning, never the answer."""
    try:
        return read() if path.is_file() else None
    except (OSError, ValueError, EpochcastError) as problem:
        warnings.warn(f"your profile {path} is left out: {problem}", ProfileWarning, stacklevel=3)
        return None


def _profile_in(path: Path, device: Device) -> Profile:
    profiles = load_profiles(read_text(path), str(path))
    if plain(device.name) not in profiles:
        raise BadInput(f"{path}: has no profile of {device.name}")
    return profiles[plain(device.name)]


def profiles_folder() -> Path:
    """The folder of the user's profiles."""
    folder = os.environ.get("EPOCHCAST_PROFILES")
    return Path(folder) if folder else _default_folder()


@remembered(1)  # every forecast needs it
def _default_folder() -> Path:
    from platformdirs import user_data_path

    return user_data_path("epochcast") / "profiles"


def profile_path(device: Device) -> Path:
    """The path of a device's profile; the file may not exist."""
    return profiles_folder() / f"{plain(device.name)}.toml"


def save_profile(profile: Profile, path: Path) -> None:
    """Write a profile atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, to_toml([profile]))


def load_profiles(text: str, file: str = "a profile") -> dict[str, Profile]:
    """The profiles in a TOML text by plain device name."""
    profiles: dict[str, Profile] = {}
    for profile in rows.read(rows.parse(text, file), "profile", file, _profile):
        if profiles.setdefault(plain(profile.device), profile) is not profile:
            raise BadInput(f"{file}: two profiles of {profile.device!r}")
    return profiles


def _profile(row: rows.CatalogueRow) -> Profile:
    spread = row.numbers("step_spread") if row.has("step_spread") else None
    if spread is not None and set(spread) != {"low", "high"}:
        raise row.wrong("step_spread", "{ low = …, high = … }", spread)
    return Profile(
        device=row.text("name"),
        stack=row.text("stack"),
        source=row.text("source"),
        date=row.text("date"),
        rows=row.count("rows"),
        relative_to=row.text("relative_to", ""),
        gemm_fraction=row.numbers("gemm_fraction") if row.has("gemm_fraction") else {},
        bandwidth_fraction=row.number("bandwidth_fraction") if row.has("bandwidth_fraction") else None,
        launch_seconds=row.number("launch_seconds") if row.has("launch_seconds") else None,
        compute_factor=row.number("compute_factor") if row.has("compute_factor") else 1.0,
        memory_factor=row.number("memory_factor") if row.has("memory_factor") else 1.0,
        class_factor=row.numbers("class_factor") if row.has("class_factor") else {},
        step_spread=(spread["low"], spread["high"]) if spread is not None else None,
        precisions=row.texts("precisions"),
    )


def to_toml(profiles: list[Profile]) -> str:
    """Profiles as `[[profile]]` rows that `load_profiles` reads back as they were."""
    return "\n".join(_row(profile) for profile in profiles)


def _row(profile: Profile) -> str:
    cells: dict[str, object] = {
        "name": profile.device,
        "stack": profile.stack,
        "relative_to": profile.relative_to or None,
        "rows": profile.rows,
        "precisions": profile.precisions or None,
        "gemm_fraction": profile.gemm_fraction or None,
        "bandwidth_fraction": profile.bandwidth_fraction,
        "launch_seconds": profile.launch_seconds,
        "compute_factor": profile.compute_factor,
        "memory_factor": profile.memory_factor,
        "class_factor": profile.class_factor or None,
        "step_spread": dict(zip(("low", "high"), profile.step_spread, strict=True)) if profile.step_spread else None,
        "source": profile.source,
        "date": profile.date,
    }
    lines = [f"{key} = {_value(value)}" for key, value in cells.items() if value is not None]
    return "\n".join(["[[profile]]", *lines, ""])


def _value(value: object) -> str:
    """A text, a number or a table of numbers in TOML."""
    match value:
        case str():
            return '"' + "".join(_character(c) for c in value) + '"'
        case int() | float():
            return repr(value)
        case tuple():
            return "[" + ", ".join(map(_value, value)) + "]"
        case Mapping():
            return "{ " + ", ".join(f"{_value(str(key))} = {_value(inner)}" for key, inner in value.items()) + " }"
        case _:
            raise TypeError(f"a {type(value).__name__} cannot be written to a profile")


def _character(character: str) -> str:
    """Escaped for a TOML basic string: quotes, backslashes and control characters."""
    if character in '"\\':
        return "\\" + character
    is_control = ord(character) < 0x20 or ord(character) == 0x7F
    return f"\\u{ord(character):04x}" if is_control else character


def _check(name: str, value: float, low: float, high: float) -> None:
    if not (isfinite(value) and low <= value <= high):
        raise BadInput(f"{name} must be between {low:g} and {high:g}, got {value}")
