import pytest

from epochcast.describe.capture.channel_order import check_channels_first
from epochcast.errors import BadInput


@pytest.mark.parametrize(
    ("shape", "channels", "meant"),
    [
        ((224, 224, 3), 3, "3x224x224"),
        ((224, 160, 1), 3, "1x224x160"),
        ((28, 28, 1), 1, "1x28x28"),
        ((64, 64, 4), 4, "4x64x64"),
        ((16, 112, 112, 3), 3, "3x16x112x112"),
        ((128, 128, 12), 12, "12x128x128"),
    ],
)
def test_a_small_last_size_after_larger_ones_is_the_channels(shape: tuple[int, ...], channels: int, meant: str) -> None:
    with pytest.raises(
        BadInput, match=f"looks like channels-last; epochcast reads channels first: `input_shape` {meant}"
    ):
        check_channels_first(shape, channels)


@pytest.mark.parametrize(
    ("shape", "channels"),
    [
        ((3, 224, 224), 3),
        ((1, 224, 224), 3),
        ((12, 224, 224), 3),  # satellite images
        ((3, 224, 3), 3),  # as many channels as the network expects: an image of three columns
        ((6, 4, 4), 3),  # the last size is no smaller than the one before it
        ((224, 224, 16), 3),  # no usual number of channels: not certain
        ((64, 32, 3), 64),
        ((128,), 3),
        ((80, 3), 3),
    ],
)
def test_what_may_be_channels_first_is_taken_as_it_is(shape: tuple[int, ...], channels: int) -> None:
    check_channels_first(shape, channels)
