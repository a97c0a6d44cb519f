"""What a sample holds besides text: images, frames of a film, seconds of sound, labels of its own length.

>>> parse_images("4x768x768"), parse_images("336x336"), parse_images("0")
((4, 768, 768), (1, 336, 336), (0, 1, 1))
"""

from dataclasses import dataclass, fields

from epochcast.errors import BadInput, UnknownName
from epochcast.units import parse_shape


@dataclass(frozen=True, slots=True)
class SampleContents:
    """`images` is their count, height and width; None: what the model usually gets."""

    images: tuple[int, ...] | None = None
    frames: int | None = None
    audio_seconds: float | None = None
    label_tokens: int | None = None

    def given(self) -> tuple[str, ...]:
        """The names of what was said."""
        return tuple(item.name for item in fields(self) if getattr(self, item.name) is not None)

    def check_taken(self, taken: tuple[str, ...], model: str) -> None:
        """Raise where something was said that a model does not take."""
        takes = f"; it takes {', '.join(_flag(name) for name in taken)}" if taken else ""
        for name in self.given():
            if name not in taken:
                raise BadInput(f"{_flag(name)}: {model} takes no {_WHAT[name]}{takes}")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


_WHAT = {
    "images": "images beside text",
    "frames": "frames of a film",
    "audio_seconds": "sound of any length",
    "label_tokens": "labels of a length of their own",
}
CACHED, TEXT, PICTURES, ALL = "cached", "text", "vae", "all"
ENCODERS = (CACHED, TEXT, PICTURES, ALL)
"""Which frozen encoders of a diffusion model run in every step."""


def find_encoders(name: str) -> str:
    """One of them, by its name."""
    if name not in ENCODERS:
        raise UnknownName("encoders", name, ENCODERS)
    return name


PLAIN = SampleContents()
"""Nothing said."""


def parse_images(text: str) -> tuple[int, ...]:
    """Count, height and width of "4x768x768" or "768x768"; "0" is none."""
    if text.strip() == "0":
        return (0, 1, 1)
    try:
        sizes = parse_shape(text)
    except BadInput:
        sizes = ()
    if len(sizes) not in (2, 3):
        raise BadInput(f"{text!r} are no images; write count x height x width, like 4x768x768 (0 for none)")
    return sizes if len(sizes) == 3 else (1, *sizes)
