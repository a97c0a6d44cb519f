"""Whether the shape of an image was given channels last (224x224x3) to a network that takes channels first (3x224x224).

Read as it stands, 224x224x3 is an image of 224 channels and 3 columns: a network that takes any number of channels is
forecast several times too fast, without a word. An image has few channels and many rows and columns, so a small last
size after larger ones is certain to be the channels, unless the first size is what the network expects.
"""

from collections.abc import Sequence

from epochcast.errors import BadInput

USUAL_CHANNELS = (1, 3, 4)
"""Grey, colours, and colours with transparency (or the latent space of diffusion)."""


def check_channels_first(shape: Sequence[int], channels: int) -> None:
    """Refuse a shape that is channels last, of a network whose own input has so many `channels` first."""
    if len(shape) < 3 or shape[0] == channels:
        return
    *sides, last = shape
    expected = USUAL_CHANNELS if channels in USUAL_CHANNELS else (channels,)
    if last in expected and min(sides) > last:
        text, reordered = ",".join(map(str, shape)), "x".join(map(str, (last, *sides)))
        raise BadInput(
            f"`input_shape` {text}: looks like channels-last; epochcast reads channels first: `input_shape` {reordered}"
        )
