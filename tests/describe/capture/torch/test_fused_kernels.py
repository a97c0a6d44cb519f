"""Operators that CUDA runs as one kernel are one op here."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from epochcast.describe.capture.torch.fused_kernels import cuda_kernels
from epochcast.describe.graph.op import Gradient, Phase
from epochcast.describe.graph.op_kinds import Attention, Copy, Elementwise, Matmul, Norm, Recurrent, Softmax
from epochcast.describe.graph.tensor import DType
from epochcast.describe.graph.trace import Trace

Capture = Callable[..., Trace]


class SelfAttention(nn.Module):
    def __init__(self, causal: bool = False) -> None:
        super().__init__()
        self.qkv = nn.Linear(32, 96, bias=False)
        self.causal = causal

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, 4, 8).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return y.transpose(1, 2).reshape(batch, length, 32)


def test_attention_is_one_kernel_each_way_with_the_flops_of_a_flash_kernel(capture: Capture) -> None:
    """N = 2, H = 4, L = 10, D = 8: QKᵀ and PV are 2·2·4·10·10·8 flops each; backward five products."""
    ops = capture(lambda: SelfAttention(causal=True), (10, 32), mode="forward_backward").ops
    forward, backward = (op for op in ops if isinstance(op.kind, Attention))
    assert forward.kind == Attention(causal=True)
    assert [t.shape for t in forward.inputs] == [(2, 4, 10, 8)] * 3
    product = 2 * 2 * 4 * 10 * 10 * 8
    assert (forward.kind.flops(forward), backward.kind.flops(backward)) == (2 * product, 5 * product)
    assert backward.gradient is Gradient.BOTH
    assert [t.name for t in backward.inputs[1:4]] == [t.name for t in forward.inputs]


def test_the_result_of_attention_is_laid_out_by_token_so_that_joining_heads_is_free(capture: Capture) -> None:
    ops = capture(SelfAttention, (10, 32), mode="forward").ops
    assert [op.kind.label for op in ops] == ["matmul", "attention"]


def test_eager_attention_writes_its_scores_to_memory(capture: Capture) -> None:
    ops = capture(SelfAttention, (10, 32), mode="forward", attention="eager").ops
    assert not any(isinstance(op.kind, Attention) for op in ops)
    softmax = next(op for op in ops if isinstance(op.kind, Softmax))
    assert softmax.output.shape == (2, 4, 10, 10)
    assert [op.output.shape for op in ops if isinstance(op.kind, Matmul)][1:] == [(8, 10, 10), (8, 10, 8)]


def test_a_fused_softmax_is_the_only_kernel_between_the_products(capture: Capture) -> None:
    labels = {
        kind: [op.kind.label for op in capture(SelfAttention, (10, 32), mode="forward", attention=kind).ops]
        for kind in ("eager", "fused_softmax")
    }
    between = {kind: names[names.index("softmax") - 1] for kind, names in labels.items()}
    assert between == {"eager": "elementwise", "fused_softmax": "matmul"}
    assert len(labels["fused_softmax"]) < len(labels["eager"])


def test_multihead_attention_without_weights_is_fused(capture: Capture) -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(32, 4, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y: torch.Tensor = self.attention(x, x, x, need_weights=False)[0]
            return y

    ops = capture(Block, (10, 32), mode="forward_backward").ops
    assert [op.phase for op in ops if isinstance(op.kind, Attention)] == [Phase.FORWARD, Phase.BACKWARD]


def test_a_transformer_encoder_trains_without_its_fast_path(capture: Capture) -> None:
    def make() -> nn.Module:
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        return nn.TransformerEncoder(layer, 2)

    ops = capture(make, (10, 32), mode="forward_backward").ops
    assert sum(isinstance(op.kind, Attention) for op in ops) == 4


class Reader(nn.Module):
    def __init__(self, cell: Callable[..., nn.Module], **options: object) -> None:
        super().__init__()
        self.body = cell(8, 16, **options)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.body(x)[0]
        return y


def test_an_lstm_is_one_op_a_layer(capture: Capture) -> None:
    """Two layers, both directions. Forward 2·N·T flops a weight: N = 2, T = 5."""
    trace = capture(
        lambda: Reader(nn.LSTM, num_layers=2, bidirectional=True, batch_first=True), (5, 8), mode="forward_backward"
    )
    layers = [op for op in trace.ops if isinstance(op.kind, Recurrent)]
    assert [op.kind for op in layers] == [Recurrent("lstm", 16, 2)] * 4
    assert [op.inputs[0].shape for op in layers[:2]] == [(2, 5, 8), (2, 5, 32)]
    first = 2 * (64 * 8 + 64 * 16)
    assert layers[0].kind.flops(layers[0]) == 2 * 2 * 5 * first
    assert layers[3].kind.flops(layers[3]) == 2 * 2 * 2 * 5 * first
    assert {t.name for t in layers[3].outputs} >= {"grad:body.weight_ih_l0", "grad:body.bias_hh_l0_reverse"}


@pytest.mark.parametrize(
    ("cell", "name"), [(nn.LSTM, "lstm"), (nn.GRU, "gru"), (nn.RNN, "rnn")], ids=["lstm", "gru", "rnn"]
)
def test_a_sequence_in_front_of_the_batch_is_still_read_as_batch_by_steps(
    capture: Capture, cell: Callable[..., nn.Module], name: str
) -> None:
    class TimeFirst(Reader):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x.transpose(0, 1)).transpose(0, 1)

    ops = capture(lambda: TimeFirst(cell), (5, 8), mode="forward").ops
    recurrent = next(op for op in ops if isinstance(op.kind, Recurrent))
    assert recurrent.kind == Recurrent(name, 16, 1)
    assert (recurrent.inputs[0].shape, recurrent.output.shape) == ((2, 5, 8), (2, 5, 16))


def test_frozen_recurrent_weights_leave_the_gradient_of_the_data(capture: Capture) -> None:
    class Stacked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.into, self.reader = nn.Linear(8, 8), Reader(nn.LSTM, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y: torch.Tensor = self.reader(self.into(x))
            return y

    ops = capture(Stacked, (5, 8), mode="forward_backward", freeze=("reader.*",)).ops
    backward = [op for op in ops if isinstance(op.kind, Recurrent)][-1]
    assert backward.gradient is Gradient.DATA
    assert [t.shape for t in backward.outputs] == [(2, 5, 8)]


def test_dropout_writes_a_boolean_mask_that_backward_reads(capture: Capture) -> None:
    ops = capture(lambda: nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1)), (4,), mode="forward_backward").ops
    forward, backward = (op for op in ops if op.kind == Elementwise("dropout"))
    assert [t.dtype for t in forward.outputs] == [DType.FLOAT32, DType.BOOL]
    assert backward.inputs[1].name == forward.outputs[1].name


@pytest.mark.parametrize("p", [0.0, 1e-9])
def test_dropout_of_nothing_runs_no_kernel(capture: Capture, p: float) -> None:
    ops = capture(lambda: nn.Sequential(nn.Linear(4, 4), nn.Dropout(p)), (4,), mode="forward").ops
    assert len(ops) == (1 if p == 0 else 2)


def test_root_mean_square_normalisation_is_one_kernel(capture: Capture) -> None:
    ops = capture(lambda: nn.Sequential(nn.Linear(4, 4), nn.RMSNorm(4)), (4,), mode="forward_backward").ops
    forward, backward = (op for op in ops if isinstance(op.kind, Norm))
    assert forward.kind == Norm("rms")
    assert "grad:1.weight" in [t.name for t in backward.outputs]


def test_nothing_is_redirected_outside_a_capture() -> None:
    q = torch.empty(1, 2, 3, 4, device="meta", requires_grad=True)
    before = F.scaled_dot_product_attention(q, q, q).grad_fn
    with cuda_kernels():
        inside = F.scaled_dot_product_attention(q, q, q).grad_fn
    after = F.scaled_dot_product_attention(q, q, q).grad_fn
    assert type(before) is type(after)
    assert type(inside) is not type(before)


def test_a_gradient_of_a_mask_is_written(capture: Capture) -> None:
    """A learned bias of the scores, as relative positions are."""

    class Biased(SelfAttention):
        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Parameter(torch.empty(1, 4, 10, 10))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q = self.qkv(x)[..., :32].view(x.shape[0], 10, 4, 8).transpose(1, 2)
            return F.scaled_dot_product_attention(q, q, q, attn_mask=self.bias).flatten(1)

    ops = capture(Biased, (10, 32), mode="forward_backward").ops
    backward = next(op for op in ops if isinstance(op.kind, Attention) and op.is_gradient)
    assert backward.outputs[3].name == "grad:bias"
    assert not any(op.kind == Copy("cast") for op in ops)
