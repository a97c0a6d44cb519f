"""A float32 module that is to be trained in half is captured in half: what it casts up to float32 is seen.

The truth is a real model of transformers on the CPU: the storages that autograd really saves.
"""

from typing import Any

import pytest
import torch
from tests.every import every
from torch import nn

from epochcast.describe.capture.torch.small_values import Values
from epochcast.describe.capture.torch.stored_weights import stored_as_half
from epochcast.describe.capture.torch.user_workload import from_workload
from epochcast.describe.capture.workload import Workload
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import DType
from epochcast.describe.graph.trace import Trace
from epochcast.predict.memory.lifetimes import Role, lifetimes

BATCH, TOKENS = 4, 64
SIZES = "num_hidden_layers=2, hidden_size=128, num_attention_heads=4, intermediate_size=352, vocab_size=1000"
GROUPED = f"{SIZES}, num_key_value_heads=2, head_dim=32"
UNDROPPED = "hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0"
REFERENCES = {
    "llama": f"hf:LlamaConfig({GROUPED})",
    "gemma2": f"hf:Gemma2Config({GROUPED})",
    "qwen3": f"hf:Qwen3Config({GROUPED})",
    "bert": f"hf:BertConfig({SIZES}, {UNDROPPED})",
    "gpt2": "hf:GPT2Config(n_layer=2, n_embd=128, n_head=4, vocab_size=1000, "
    "resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)",
}


def really_saved_bytes(model: Any) -> int:
    """Bytes of all storages that autograd saves in a forward pass on the CPU, but for weights, tables and inputs."""
    tokens = torch.randint(5, 100, (BATCH, TOKENS))
    storages: dict[int, torch.UntypedStorage] = {}
    own = {t.untyped_storage().data_ptr() for t in (*model.parameters(), *model.buffers(), tokens)}

    def saved(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            storages[storage.data_ptr()] = storage  # kept alive, so that no address is used twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(saved, lambda tensor: tensor):
        assert model(input_ids=tokens, labels=tokens.clone()).loss.requires_grad
    return sum(storage.nbytes() for storage in storages.values())


def captured_bytes(trace: Trace) -> int:
    lives = lifetimes(trace)
    return lives.total_bytes(Role.ACTIVATIONS, BATCH)


@every("precision", ["fp32", "bf16"])
@every("reference", REFERENCES.values(), ids=REFERENCES)
def test_a_capture_keeps_what_autograd_really_saves(reference: str, precision: str) -> None:
    pytest.importorskip("transformers")
    from epochcast.describe.capture.hf import hf_model

    model = hf_model(reference, (TOKENS,))
    trace = model.trace(Recipe(BATCH, precision=precision, mode="forward_backward"))
    real = type(model.module)(model.module.config).to(torch.bfloat16 if precision == "bf16" else torch.float32)
    # On the CPU layer norm keeps its statistics in half, on a GPU in float32: 0.2 %.
    assert captured_bytes(trace) == pytest.approx(really_saved_bytes(real.train()), rel=0.003)


class Norm(nn.Module):
    """A norm in float32 behind a linear layer, as language models have it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)
        self.register_buffer("scale", torch.ones(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        wide = y.float()
        result: torch.Tensor = (wide * wide.pow(2).mean(-1, keepdim=True).rsqrt()).to(y.dtype) * self.scale
        return result


def dtypes(trace: Trace, layer: str = "") -> set[DType]:
    return {t.dtype for op in trace.template.base for t in op.outputs if op.layer == layer and t.dtype.is_float}


def test_what_a_module_casts_up_is_float32_and_the_rest_is_half() -> None:
    model = from_workload(Workload(Norm(), inputs=(16,)))
    for precision, half in (("bf16", DType.BFLOAT16), ("fp16", DType.FLOAT16), ("bf16_deepspeed", DType.BFLOAT16)):
        trace = model.trace(Recipe(4, precision=precision))
        assert dtypes(trace) == {DType.FLOAT32, half}
        assert dtypes(trace, "layer") == {half}
    assert dtypes(model.trace(Recipe(4))) == {DType.FLOAT32}


def test_masters_and_their_state_are_float32_and_parameters_half() -> None:
    trace = from_workload(Workload(Norm(), inputs=(16,))).trace(Recipe(4, "adamw", precision="bf16_deepspeed"))
    lives = lifetimes(trace)
    elements = 16 * 16 + 16
    assert lives.total_bytes(Role.PARAMETERS) == 2 * elements
    assert lives.total_bytes(Role.GRADIENTS) == 2 * elements
    assert lives.total_bytes(Role.OPTIMIZER_STATE) == 12 * elements


def test_the_module_is_left_as_it_was() -> None:
    module = Norm()
    before = [(name, t.dtype, t.data_ptr()) for name, t in (*module.named_parameters(), *module.named_buffers())]
    with stored_as_half(module, "bf16", Values()):
        assert {t.dtype for t in (*module.parameters(), *module.buffers())} == {torch.bfloat16}
    assert before == [
        (name, t.dtype, t.data_ptr()) for name, t in (*module.named_parameters(), *module.named_buffers())
    ]


class Single(nn.Module):
    """Takes float32 alone."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dtype is not torch.float32:
            raise TypeError(f"expected float32, got {x.dtype}")
        result: torch.Tensor = self.layer(x)
        return result


def test_a_module_that_does_not_run_in_half_is_rewritten_and_says_so() -> None:
    trace = from_workload(Workload(Single(), inputs=(16,))).trace(Recipe(4, precision="bf16"))
    assert any("does not run in bf16" in note for note in trace.notes)
    assert dtypes(trace, "layer") == {DType.BFLOAT16}
    assert not from_workload(Workload(Single(), inputs=(16,))).trace(Recipe(4)).notes
