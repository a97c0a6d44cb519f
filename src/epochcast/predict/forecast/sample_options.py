"""Options of a job about what a sample holds besides text (images, films, sound, labels), and steps of an epoch."""

from dataclasses import dataclass
from functools import partial

from epochcast.base.options import option
from epochcast.base.record import Record
from epochcast.describe.capture.sample_contents import CACHED, SampleContents, find_encoders, parse_images
from epochcast.units import parse_seconds

MOST_FRAMES, MOST_LABELS, MOST_AUDIO_SECONDS = 4096, 65_536, 3600.0

_model = partial(option, group="model")


@dataclass(frozen=True, kw_only=True)
class SampleOptions(Record):
    """What `Job` says of a sample."""

    images: tuple[int, ...] | None = _model(
        None,
        "Images of a sample beside its text: count x height x width, like 4x768x768; 0 for none [default: one].",
        parse=parse_images,
        example="(4, 768, 768)",
    )
    frames: int | None = _model(None, "Frames of film per sample.", unit="frames", least=1, most=MOST_FRAMES)
    audio_seconds: float | None = _model(
        None,
        "Sound per sample, like 12s.",
        unit="seconds",
        above=0,
        most=MOST_AUDIO_SECONDS,
        parse=partial(parse_seconds, option="--audio-seconds", unit="s"),
    )
    label_tokens: int | None = _model(
        None, "Length of the labels of speech, padding included.", unit="tokens", least=1, most=MOST_LABELS
    )

    encoders: str = _model(
        CACHED,
        "Frozen encoders of a diffusion model that run in every step: text, vae or all; cached: none does.",
        parse=find_encoders,
    )
    steps_per_epoch: int | None = option(
        None, "Steps of an epoch, like 250, whatever the data (nnU-Net).", group="data", least=1, most=10**9
    )

    @property
    def contents(self) -> SampleContents:
        """The same, as models are asked for it."""
        return SampleContents(self.images, self.frames, self.audio_seconds, self.label_tokens)
