"""Work that depends on the data, where something sensible can be said: routing, CTC, conditions, pieces of a batch."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import epochcast as ec
from epochcast.describe.capture.torch.user_workload import from_workload
from epochcast.describe.capture.workload import Workload
from epochcast.describe.graph.op_kinds import Loss
from epochcast.describe.graph.recipe import Recipe


class Experts(nn.Module):
    """Two of eight experts for every token, as people write it in plain PyTorch."""

    def __init__(self, *, by_mask: bool) -> None:
        super().__init__()
        self.router = nn.Linear(32, 8)
        self.experts = nn.ModuleList([nn.Linear(32, 32, bias=False) for _ in range(8)])
        self.by_mask = by_mask

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.reshape(-1, 32)
        weights, chosen = self.router(tokens).softmax(-1).topk(2, dim=-1)
        out = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            if self.by_mask:
                mask = (chosen == number).any(-1)
                out[mask] += expert(tokens[mask])
            else:
                rows, places = torch.where(chosen == number)
                if rows.numel() == 0:
                    continue
                out = out.index_add(0, rows, expert(tokens[rows]) * weights[rows, places, None])
        return out.reshape(x.shape)


@pytest.mark.parametrize("by_mask", [True, False])
def test_experts_get_as_many_tokens_each(by_mask: bool) -> None:
    model = from_workload(Workload(Experts(by_mask=by_mask), inputs=torch.zeros(2, 16, 32)))
    flops = model.trace(Recipe(5, mode="forward")).flops["matrix"]
    tokens = 5 * 16
    assert flops == tokens * (2 * 32 * 8 + 2 * 2 * 32 * 32)


def test_the_answer_says_that_routing_is_taken_as_balanced() -> None:
    answer = ec.forecast(Experts(by_mask=False), inputs=torch.zeros(2, 16, 32), device="A100", batch=4)
    assert any("taken as balanced" in note for note in answer.warnings)


@pytest.mark.parametrize("concatenated", [True, False])
def test_ctc_keeps_two_states_a_letter_at_every_time(concatenated: bool) -> None:
    def loss(output: torch.Tensor, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        scores = output.log_softmax(-1).transpose(0, 1)
        texts = batch["texts"].flatten() if concatenated else batch["texts"]
        return F.ctc_loss(scores, texts, batch["frames"], batch["letters"])

    class Speech(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 29)

        def forward(self, sound: torch.Tensor, **rest: torch.Tensor) -> torch.Tensor:
            return self.layer(sound)  # type: ignore[no-any-return]

    inputs = {
        "sound": torch.zeros(2, 50, 8),
        "texts": torch.ones(2, 12, dtype=torch.long),
        "frames": torch.tensor([50, 50]),
        "letters": torch.tensor([12, 12]),
    }
    model = ec.Workload(Speech(), inputs=inputs, loss=loss)
    answer = ec.forecast(model, device="A100", batch=4)
    ops = [op for op in answer.details.trace.ops if op.kind == Loss("ctc")]
    assert [tuple(t.shape for t in op.outputs) for op in ops] == [((4,), (4, 50, 25)), ((50, 4, 29),)]
    assert not answer.opaque_ops


def test_a_distribution_that_checks_its_sample_is_taken_as_valid() -> None:
    def loss(output: torch.Tensor) -> torch.Tensor:
        return -torch.distributions.Normal(0.0, 1.0, validate_args=True).log_prob(output).mean()  # type: ignore[no-any-return, no-untyped-call]

    assert ec.forecast(nn.Linear(8, 8), inputs=torch.zeros(2, 8), loss=loss, device="A100", batch=4).fits


def test_a_batch_in_pieces_that_is_joined_again_grows() -> None:
    class Pieces(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([sample[None] for sample in self.layer(x)])

    answer = ec.forecast(Pieces(), inputs=torch.zeros(2, 8), device="A100", batch=64)
    assert answer.flops_per_sample == 2 * 2 * 64


def test_a_scripted_module_is_refused_in_one_line() -> None:
    scripted = torch.jit.script(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)))
    with pytest.raises(ec.BadInput, match="give the model as it is before"):
        ec.forecast(scripted, inputs=torch.zeros(2, 8), device="A100", batch=64)


def test_sparse_gradients_are_forecast_as_dense_with_a_note() -> None:
    class Ranking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.head = nn.Embedding(1000, 8, sparse=True), nn.Linear(8, 1)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.table(ids))  # type: ignore[no-any-return]

    answer = ec.forecast(Ranking(), inputs=torch.zeros(2, dtype=torch.long), device="A100", batch=64)
    assert any("sparse gradients of tables are not modelled" in note for note in answer.warnings)


def test_a_detector_of_torchvision_is_answered_with_its_name() -> None:
    torchvision = pytest.importorskip("torchvision")
    detector = torchvision.models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None)
    with pytest.raises(ec.BadInput, match="forecast it by its name"):
        ec.forecast(detector, inputs=([torch.zeros(3, 32, 32)],), device="A100", batch=2)


def test_what_a_live_model_computes_again_is_no_work_of_the_model() -> None:
    from torch.utils.checkpoint import checkpoint

    class Block(nn.Module):
        def __init__(self, again: bool) -> None:
            super().__init__()
            self.layers, self.again = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)), again

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return checkpoint(self.layers, x, use_reentrant=False) if self.again else self.layers(x)  # type: ignore[no-any-return]

    again, kept = (
        ec.forecast(Block(again), inputs=torch.zeros(2, 512), device="A100", batch=4096) for again in (True, False)
    )
    assert again.mfu is not None
    assert kept.mfu is not None
    assert (again.flops_per_sample or 0.0) > (kept.flops_per_sample or 0.0)
    assert again.mfu * again.step_seconds.mid == pytest.approx(kept.mfu * kept.step_seconds.mid)
