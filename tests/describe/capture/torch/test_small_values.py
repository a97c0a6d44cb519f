"""Small integers, masks and tables have values in a capture; what is not known is asked for or noted."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from epochcast.describe.capture.torch.user_workload import from_workload
from epochcast.describe.capture.workload import Workload
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.op_kinds import Matmul, Recurrent
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput


class Run(nn.Module):
    """A linear layer, and a function that looks at the data."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.register_buffer("flag", torch.tensor(True))
        self.function = function

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> Any:
        return self.function(self, x, mask)


def traced(function: Any, *inputs: Any, batch: int = 4, **options: Any) -> Trace:
    return from_workload(Workload(Run(function), inputs, **options)).trace(Recipe(batch))


def products(trace: Trace) -> list[int]:
    """Rows of every product in the forward pass."""
    kinds = [op for op in trace.ops if isinstance(op.kind, Matmul) and op.phase is Phase.FORWARD]
    return [op.outputs[0].elements // 8 for op in kinds]


X = torch.zeros(2, 6, 8)


def test_a_mask_that_hides_nothing_and_one_that_does() -> None:
    def looks(self: Any, x: torch.Tensor, mask: torch.Tensor) -> Any:
        return self.layer(x) if mask.all() else self.layer(self.layer(x))

    mask = torch.ones(2, 6, dtype=torch.bool)
    assert len(products(traced(looks, X, mask))) == 1
    mask[1, 3:] = False
    trace = traced(looks, X, mask)
    assert len(products(trace)) == 2
    assert trace.notes == ()


def test_a_mask_as_an_index_selects_as_many_rows_per_sample_as_the_example() -> None:
    mask = torch.zeros(2, 6, dtype=torch.bool)
    mask[0, :4], mask[1, :2] = True, True
    trace = traced(lambda self, x, m: self.layer(x[m]), X, mask, loss=lambda out: out.sum())
    assert products(trace) == [4 * 3]
    assert products(traced(lambda self, x, m: self.layer(x[m]), X, mask, loss=lambda out: out.sum(), batch=64)) == [
        64 * 3
    ]


@pytest.mark.parametrize(
    "function",
    [
        lambda self, x, m: self.layer(x[:, : int(m.sum(1).max())]),
        lambda self, x, m: self.layer(x[:, : max(m.sum(1).tolist())]),
        lambda self, x, m: self.layer(x[:, : m.nonzero()[:, 1].max().item() + 1]),
        lambda self, x, m: self.layer(x[:, : int(torch.tensor([2, 4], device=x.device)[1])]),
        lambda self, x, m: self.layer(x[:, :4]) if self.flag else x,
    ],
    ids=["item", "tolist", "nonzero", "literal", "buffer"],
)
def test_lengths_flags_and_tables_are_known(function: Any) -> None:
    mask = torch.zeros(2, 6, dtype=torch.bool)
    mask[:, :4] = True
    assert products(traced(function, X, mask)) == [16]


def test_writing_in_place_changes_a_value_and_its_views() -> None:
    def writes(self: Any, x: torch.Tensor, mask: torch.Tensor) -> Any:
        view = mask[:, 0]
        mask[:, 0] = 5
        mask.add_(1)
        return self.layer(x) if int(view[0]) == 6 else x

    assert len(products(traced(writes, X, torch.ones(2, 6, dtype=torch.long)))) == 1


def test_what_depends_on_activations_is_never_known() -> None:
    def writes(self: Any, x: torch.Tensor, mask: torch.Tensor) -> Any:
        mask = mask.clone()
        mask[:, 0] = x[:, 0, 0].long()
        return x[:, : int(mask.max())]

    with pytest.raises(BadInput, match="needs the values of a tensor"):
        traced(writes, X, torch.ones(2, 6, dtype=torch.long))


def test_a_loop_that_waits_for_a_value_ends() -> None:
    def waits(self: Any, x: torch.Tensor, mask: Any) -> Any:
        while x.abs().max().item() > 0.5:
            x = x / 2
        return x

    with pytest.raises(BadInput, match="needs the values of a tensor"):
        traced(waits, X)


def test_cuda_means_where_the_capture_runs() -> None:
    def moves(self: Any, x: torch.Tensor, mask: Any) -> Any:
        table = torch.arange(8, device="cuda").float().cuda()
        return self.layer(x.to("cuda:0", non_blocking=True) + table.to(device=torch.device("cuda")))

    assert len(products(traced(moves, X))) == 1


def test_a_weight_that_is_nobodys_is_said() -> None:
    layers = [nn.Linear(8, 8)]
    with pytest.raises(BadInput, match=r"nn\.ModuleList, not into a plain list"):
        traced(lambda self, x, m: layers[0](self.layer(x)), X)


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(8, 16, 2, batch_first=True, bidirectional=True)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        rnn = nn.utils.rnn
        packed = rnn.pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        out, _ = rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return out


def test_packed_sequences_run_at_their_mean_length() -> None:
    workload = Workload(Packed(), (torch.zeros(2, 10, 8), torch.tensor([10, 4])), loss=lambda out: F.relu(out).sum())
    trace = from_workload(workload).trace(Recipe(4))
    recurrent = [op for op in trace.ops if isinstance(op.kind, Recurrent)]
    assert len(recurrent) == 4  # two layers, forward and backward
    assert recurrent[0].inputs[0].shape == (4, 7, 8)
    assert trace.opaque == ()
