"""Speech recognition as AlgoPerf trains it (Dahl et al. 2023, "Benchmarking neural network training algorithms").

Both networks read 80 mel frequencies of every 10 ms, quarter both by two strided 3x3 convolutions of 512 channels, and
end in 1,024 word pieces and CTC:

    conformer     four blocks (Gulati et al. 2020): half a feed-forward layer, attention of eight heads, a depthwise
                  convolution of five frames between gates, half a feed-forward layer; width 512
    deepspeech    four bidirectional LSTMs of 256 each way behind batch norms, three feed-forward layers; residuals

Utterances are padded to 320,000 samples, which are 2,000 frames. The spectrogram itself and its masking are left out:
a thousandth of the arithmetic.
"""

from epochcast.describe.capture.zoo.attention_layers import multihead_attention
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput

WIDTH, HEADS, PIECES = 512, 8, 1024
SPECTROGRAM = (1, 2000, 80)
"""Frames and mel frequencies."""
KERNEL_FRAMES = 5


def conformer(
    batch: int, input_shape: tuple[int, ...] = SPECTROGRAM, *, name: str, layers: int = 4, norm: str = "batch"
) -> Graph:
    """`norm` is that of the convolution: `batch`, or `layer` in AlgoPerf's variant of that name."""
    b = Builder(name, batch)
    x = _subsampled(b, input_shape)
    places = b.constant("positions", (1, *x.shape[1:]))
    x = b.dropout(b.add(x, places))
    for index in range(layers):
        with b.scope(f"conformers.{index}"):
            x = b.add(x, _half(b, x, "ff1"))
            y = b.layer_norm(x, name="mhsa.ln")
            x = b.add(
                x, b.dropout(multihead_attention(b, y, None, HEADS, name="mhsa.self_attention", batch_first=True))
            )
            x = b.add(x, _convolution(b, x, norm))
            x = b.layer_norm(b.add(x, _half(b, x, "ff2")), name="ln")
    return b.finish(b.linear(b.layer_norm(x, name="ln"), PIECES, name="lin"), loss="ctc")


def deepspeech(
    batch: int, input_shape: tuple[int, ...] = SPECTROGRAM, *, name: str, layers: int = 4, feed_forward: int = 3
) -> Graph:
    """Recurrent layers, then feed-forward ones, each behind a norm over all frames and with a residual."""
    b = Builder(name, batch)
    x = b.dropout(_subsampled(b, input_shape))
    for index in range(layers):
        with b.scope(f"lstms.{index}"):
            x = b.add(x, b.recurrent(_frame_norm(b, x), WIDTH // 2, directions=2, name="lstm"))
    for index in range(feed_forward):
        with b.scope(f"ffns.{index}"):
            x = b.add(x, b.dropout(b.relu(b.linear(_frame_norm(b, x), WIDTH, name="lin"))))
    return b.finish(b.linear(b.layer_norm(x, name="ln"), PIECES, name="lin"), loss="ctc")


def _subsampled(b: Builder, input_shape: tuple[int, ...]) -> Tensor:
    """(N, 1, frames, frequencies) → (N, frames / 4, 512)"""
    if len(input_shape) != 3 or input_shape[0] != 1:
        raise BadInput(f"{b.name} takes a spectrogram 1xFRAMESxFREQUENCIES, got {'x'.join(map(str, input_shape))}")
    x = b.input("spectrogram", input_shape)
    with b.scope("subsample"):
        for name in ("conv1", "conv2"):
            x = b.elementwise("mask", b.relu(b.conv(x, WIDTH, 3, stride=2, padding=1, name=name)), name="unpadded")
        batch, channels, frames, frequencies = x.shape
        x = b.copy("permute", x, (batch, frames, channels * frequencies))
        return b.linear(x, WIDTH, name="linear")


def _half(b: Builder, x: Tensor, name: str) -> Tensor:
    with b.scope(name):
        y = b.elementwise("silu", b.linear(b.layer_norm(x, name="ln"), 4 * WIDTH, name="linear1"))
        y = b.linear(b.elementwise("mask", y, name="unpadded"), WIDTH, name="linear2")
        return b.elementwise("scale", b.dropout(b.elementwise("mask", y, name="unpadded")), name="half")


def _convolution(b: Builder, x: Tensor, norm: str) -> Tensor:
    """Two products of which one gates the other, a convolution per channel over frames, a product."""
    batch, frames, width = x.shape
    with b.scope("conv"):
        y = b.layer_norm(x, name="ln")
        value, gate = (b.linear(y, width, name=name) for name in ("lin1", "lin2"))
        y = b.mul(value, b.elementwise("sigmoid", gate), name="glu")
        y = b.copy("permute", b.elementwise("mask", y, name="unpadded"), (batch, width, frames))
        y = b.conv(y, width, KERNEL_FRAMES, padding=KERNEL_FRAMES // 2, groups=width, bias=False, name="conv1")
        y = b.copy("permute", y, x.shape)
        y = _frame_norm(b, y) if norm == "batch" else b.layer_norm(y, name="bn")
        return b.dropout(b.linear(b.elementwise("silu", y), width, name="lin3"))


def _frame_norm(b: Builder, x: Tensor) -> Tensor:
    """Batch normalisation over all frames of all samples that are no padding, written out: mean, deviations, scale."""
    shape, width = x.shape, x.shape[-1]
    with b.scope("bn"):
        flat = b.elementwise("mask", b.view(x, (shape[0] * shape[1], width)), name="unpadded")
        return b.view(b.elementwise("mask", b.batch_norm(flat, name="norm"), name="unpadded"), shape)
