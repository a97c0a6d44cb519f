"""Models that keep their weights in half or in few bits."""

import pytest
import torch
from torch import nn

import epochcast as ec
from epochcast.describe.capture.torch.stored_weights import stored_in
from epochcast.describe.capture.torch.user_workload import from_workload
from epochcast.describe.capture.workload import Workload
from epochcast.describe.graph.recipe import Recipe

bnb = pytest.importorskip("bitsandbytes")


def frozen_beside_trained(layer: nn.Module) -> nn.Sequential:
    layer.requires_grad_(requires_grad=False)
    return nn.Sequential(nn.Linear(64, 1024), layer, nn.Linear(4096, 10))


def parameters_bytes(module: nn.Module, precision: str = "amp_bf16") -> int:
    answer = ec.forecast(module, inputs=torch.zeros(2, 64), device="A100", batch=8, precision=precision)
    return int(answer.peak_breakdown["parameters"])


class TestPacked:
    def test_a_live_four_bit_layer_keeps_half_a_byte_and_a_scale_for_64_values(self) -> None:
        packed = frozen_beside_trained(bnb.nn.Linear4bit(1024, 4096, bias=False, compute_dtype=torch.bfloat16))
        plain = nn.Sequential(nn.Linear(64, 1024), nn.Linear(4096, 10))
        values = 1024 * 4096
        expected = values // 2 + 4 * values // 64 + sum(4 * p.numel() for p in plain.parameters())
        assert parameters_bytes(packed) == pytest.approx(expected, rel=0.01)

    def test_a_live_eight_bit_layer_keeps_a_byte_a_value_and_a_scale_a_row(self) -> None:
        packed = frozen_beside_trained(bnb.nn.Linear8bitLt(1024, 4096, bias=False, has_fp16_weights=False))
        plain = nn.Sequential(nn.Linear(64, 1024), nn.Linear(4096, 10))
        expected = 1024 * 4096 + 4 * 4096 + sum(4 * p.numel() for p in plain.parameters())
        assert parameters_bytes(packed) == pytest.approx(expected, rel=0.01)

    def test_the_answer_says_how_many_weights_are_packed(self) -> None:
        module = frozen_beside_trained(bnb.nn.Linear4bit(1024, 4096, bias=False))
        answer = ec.forecast(module, inputs=torch.zeros(2, 64), device="A100", batch=8)
        assert any("1 weights are kept in four bits" in note for note in answer.warnings)

    def test_the_users_own_layers_stay_as_they_are(self) -> None:
        module = frozen_beside_trained(bnb.nn.Linear4bit(1024, 4096, bias=False))
        ec.forecast(module, inputs=torch.zeros(2, 64), device="A100", batch=8)
        assert type(list(module)[1]) is bnb.nn.Linear4bit

    def test_an_eight_bit_layer_with_half_weights_is_trained(self) -> None:
        model = from_workload(Workload(bnb.nn.Linear8bitLt(64, 64, has_fp16_weights=True), inputs=torch.zeros(2, 64)))
        assert model.packed == ()
        assert all(parameter.trainable for parameter in model.parameters())

    def test_qlora_by_name_keeps_as_many_bytes_under_autocast_as_in_bf16(self) -> None:
        """Packed weights were once counted at four bytes for each of their bytes."""
        sizes = "hidden_size=256,num_hidden_layers=4,num_attention_heads=4,intermediate_size=512,vocab_size=99"
        model = f"hf:LlamaConfig({sizes})"
        options = {"device": "A100", "batch": 1, "lora": 4, "four_bit": True, "input_shape": (64,)}
        mixed, half = (ec.forecast(model, precision=p, **options) for p in ("amp_bf16", "bf16"))  # type: ignore[arg-type]
        assert mixed.peak_breakdown["parameters"] < 1.3 * half.peak_breakdown["parameters"]


class TestHalf:
    def test_weights_in_half_decide_the_precision_of_the_answer(self) -> None:
        module = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(4)]).to(torch.bfloat16)
        inputs = torch.zeros(2, 4096, dtype=torch.bfloat16)
        answer = ec.forecast(module, inputs=inputs, device="A100", batch=4096)
        assert answer.precision == "bf16"
        assert answer.mfu is not None
        assert answer.mfu < 1
        assert "The model's weights are bf16, so it runs in bf16, not fp32." in answer.warnings

    def test_a_model_in_half_is_the_same_with_and_without_saying_so(self) -> None:
        module = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)).half()
        model = from_workload(Workload(module, inputs=torch.zeros(2, 256, dtype=torch.float16)))
        said, unsaid = (model.trace(Recipe(64, precision=p)) for p in ("fp16", "fp32"))
        assert said.columns.bytes.tolist() == unsaid.columns.bytes.tolist()
        assert unsaid.recipe.precision == "fp16"

    def test_a_few_half_weights_decide_nothing(self) -> None:
        assert stored_in(nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 1).half())) is None
