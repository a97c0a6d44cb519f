"""Recurrent networks: a word language model, Deep Speech 2, GNMT. Layers carry the names of PyTorch's LSTM and GRU.

`lstm_lm` is the "large" network of Zaremba et al. 2014 in the layers of PyTorch's word-language-model example.
`deepspeech2` follows Amodei et al. 2016 in the configuration of the public PyTorch implementation
(deepspeech.pytorch): 161 frequencies, two convolutions, five bidirectional GRU layers of 800 whose directions are
added, 29 letters, CTC. `gnmt` is Wu et al. 2016 as MLPerf trains it (version 2): four layers of 1,024 on each side,
the first of the encoder in both directions, normalised additive attention, residuals from the third layer on.
"""

from epochcast.describe.capture.zoo.attention_layers import sequence_length, token_ids
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.op_kinds import Elementwise, Recurrent
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput


def lstm_lm(
    batch: int,
    input_shape: tuple[int, ...] | None = None,
    *,
    name: str,
    layers: int = 2,
    width: int = 1500,
    vocabulary: int = 10000,
    length: int = 35,
) -> Graph:
    """Embedding, LSTM layers with dropout around each, logits over the vocabulary for every one of 35 words."""
    steps = sequence_length(name, input_shape, length)
    b = Builder(name, batch)
    x = b.dropout(b.embedding(token_ids(b, steps), vocabulary, width, name="encoder"))
    for index in range(layers):
        x = b.dropout(_recurrent(b, x, width, "rnn", layer=index))
    return b.finish(b.linear(x, vocabulary, name="decoder"), units_per_sample=steps)


def deepspeech2(
    batch: int,
    input_shape: tuple[int, ...] = (1, 161, 1001),
    *,
    name: str,
    layers: int = 5,
    hidden: int = 800,
    cell: str = "gru",
    letters: int = 29,
) -> Graph:
    """From (1, frequencies, frames) to letters for every second frame; the default is ten seconds of 100 frames."""
    if len(input_shape) != 3 or input_shape[0] != 1:
        raise BadInput(f"{name} takes a spectrogram 1xFREQUENCIESxFRAMES, got {'x'.join(map(str, input_shape))}")
    b = Builder(name, batch)
    x = b.input("spectrogram", input_shape)
    with b.scope("conv.seq_module"):
        x = b.conv(x, 32, (41, 11), stride=(2, 2), padding=(20, 5), name="0")
        x = b.elementwise("hardtanh", b.batch_norm(x, name="1"))
        x = b.conv(x, 32, (21, 11), stride=(2, 1), padding=(10, 5), name="3")
        x = b.elementwise("hardtanh", b.batch_norm(x, name="4"))
    batch, channels, height, frames = x.shape
    x = b.copy("contiguous", x, (batch, frames, channels * height))
    for index in range(layers):
        with b.scope(f"rnns.{index}"):
            if index:
                x = _frame_norm(b, x, "batch_norm.module")
            x = _recurrent(b, x, hidden, "rnn", cell=cell, directions=2)
            x = b.reduce("sum", b.view(x, (batch, frames, 2, hidden)), [2])
    with b.scope("fc.0.module"):
        x = b.linear(_frame_norm(b, x, "0"), letters, bias=False, name="1")
    return b.finish(x, loss="ctc")


def gnmt(
    batch: int,
    input_shape: tuple[int, ...] | None = None,
    *,
    name: str,
    width: int = 1024,
    layers: int = 4,
    vocabulary: int = 32320,
) -> Graph:
    """Translation; source and target have as many tokens and share one embedding; attention feeds every later layer."""
    steps = sequence_length(name, input_shape, 32)
    b = Builder(name, batch)
    x = b.dropout(b.embedding(token_ids(b, steps, "source_ids"), vocabulary, width, name="embedder"))
    with b.scope("encoder"):
        x = _recurrent(b, x, width, "rnn_layers.0", directions=2)
        for index in range(1, layers):
            y = _recurrent(b, b.dropout(x), width, f"rnn_layers.{index}")
            x = b.add(y, x) if index > 1 else y
    memory = x
    x = b.embedding(token_ids(b, steps, "target_ids"), vocabulary, width, name="embedder")
    with b.scope("decoder"):
        x = _recurrent(b, b.dropout(x), width, "att_rnn.rnn")
        with b.scope("att_rnn.attn"):
            mixed = _additive_attention(b, x, memory)
        for index in range(layers - 1):
            y = b.concatenate([b.dropout(x), mixed], -1)
            y = _recurrent(b, y, width, f"rnn_layers.{index}")
            x = b.add(y, x) if index else y
        logits = b.linear(x, vocabulary, name="classifier.classifier")
    return b.finish(logits, units_per_sample=steps)


def _additive_attention(b: Builder, query: Tensor, keys: Tensor) -> Tensor:
    """Σ softmax(v·tanh(W_q q + W_k k + b)) k over a (N, T, T, width) tensor of all pairs (Bahdanau et al. 2015)."""
    batch, steps, width = query.shape
    pairs = (batch, steps, keys.shape[1], width)
    q = b.view(b.linear(query, width, bias=False, name="linear_q"), (batch, steps, 1, width), "unsqueeze")
    k = b.view(b.linear(keys, width, bias=False, name="linear_k"), (batch, 1, keys.shape[1], width), "unsqueeze")
    both = b.op(Elementwise("add"), [q, k], [pairs], name="sum_qk")[0]
    shift = b.parameter("normalize_bias", (width,))
    both = b.op(Elementwise("add"), [both], [pairs], weights=[shift], name="sum_qk")[0]
    direction = b.parameter("linear_att", (width,))
    scale = b.parameter("normalize_scalar", (1,))
    direction = b.op(Elementwise("mul"), [direction, scale], [(width,)], name="linear_att")[0]
    column = b.view(direction, (width, 1))
    scores = b.matmul(b.elementwise("tanh", both), column, name="scores")
    weights = b.softmax(b.view(scores, pairs[:3]))
    return b.matmul(weights, keys, name="context")


def _recurrent(
    b: Builder, x: Tensor, hidden: int, name: str, *, cell: str = "lstm", directions: int = 1, layer: int = 0
) -> Tensor:
    """One layer of a PyTorch LSTM or GRU, with its two biases."""
    kind = Recurrent(cell, hidden, directions)
    rows = kind.gates * hidden
    weights = []
    with b.scope(name):
        for suffix in (f"l{layer}", f"l{layer}_reverse")[:directions]:
            for part, shape in (("weight_ih", (rows, x.shape[-1])), ("weight_hh", (rows, hidden))):
                weights.append(b.parameter(f"{part}_{suffix}", shape))
            weights.extend(b.parameter(f"{part}_{suffix}", (rows,)) for part in ("bias_ih", "bias_hh"))
    return b.op(kind, [x], [(*x.shape[:2], directions * hidden)], weights=weights, name=name)[0]


def _frame_norm(b: Builder, x: Tensor, name: str) -> Tensor:
    """Batch normalisation over all frames of all samples."""
    batch, frames, width = x.shape
    flat = b.batch_norm(b.view(x, (batch * frames, width)), name=name)
    return b.view(flat, x.shape)
