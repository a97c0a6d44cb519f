"""Hugging Face models as people run them: live, masked, wrapped by PEFT, checkpointed; and nothing left behind."""

import json
import logging
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest
import torch

import epochcast as ec
from epochcast.describe.capture.hf import hf_model
from epochcast.describe.capture.resolve import find_model
from epochcast.describe.capture.torch.torchvision_shim import import_torchvision
from epochcast.describe.capture.workload import Workload
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.op_kinds import Attention
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import DType
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput

import_torchvision()  # image models of transformers import it
transformers: Any = import_module("transformers")

SIZES: dict[str, Any] = dict(
    hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=100
)
IDS = torch.ones(2, 16, dtype=torch.long)
WHOLE = torch.ones_like(IDS)
PADDED = WHOLE.clone()
PADDED[1, 9:] = 0


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPOCHCAST_CACHE", "off")


def live(name: str) -> Any:
    match name:
        case "bert":
            return transformers.BertForMaskedLM(transformers.BertConfig(**SIZES))
        case "llama":
            return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES))
        case "mistral":
            config = transformers.MistralConfig(**SIZES, num_key_value_heads=2, sliding_window=8)
            return transformers.MistralForCausalLM(config)
        case "gpt2":
            return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=100))
        case _:
            sizes = dict(d_model=64, num_layers=2, num_heads=4, d_ff=128, d_kv=16, vocab_size=100)
            return transformers.T5ForConditionalGeneration(transformers.T5Config(**sizes, decoder_start_token_id=0))


def traced(model: Any, **inputs: torch.Tensor) -> Trace:
    return find_model(Workload(model, {"input_ids": IDS, "labels": IDS, **inputs})).trace(Recipe(4, optimizer="adamw"))


def masks(trace: Trace) -> int:
    """How many fused attentions get a mask."""
    return sum(len(op.inputs) > 3 for op in trace.ops if isinstance(op.kind, Attention) and op.phase is Phase.FORWARD)


@pytest.mark.parametrize("name", ["bert", "llama", "mistral", "gpt2"])
def test_a_mask_is_taken_as_it_is_and_skipped_where_it_hides_nothing(name: str) -> None:
    model = live(name)
    whole, padded = traced(model, attention_mask=WHOLE), traced(model, attention_mask=PADDED)
    assert whole.opaque == padded.opaque == ()
    assert masks(padded) == 2
    assert masks(whole) == (2 if name == "mistral" else 0)  # a sliding window is a mask
    assert not any("assumed" in note for note in (*whole.notes, *padded.notes))


@pytest.mark.parametrize(
    ("attention", "windows", "inputs"), [("flash", [8, 8, 0], 3), ("sdpa", [8, 8, 0], 4), ("eager", [], 0)]
)
def test_windows_are_those_of_the_configuration(attention: str, windows: list[int], inputs: int) -> None:
    """Two of three layers look at 8 of 16 tokens: PyTorch's own attention reads a mask, FlashAttention skips."""
    layers = ["sliding_attention", "sliding_attention", "full_attention"]
    config = transformers.Gemma3TextConfig(
        **{**SIZES, "num_hidden_layers": 3}, num_key_value_heads=2, head_dim=16, sliding_window=8, layer_types=layers
    )
    trace = find_model(config, (16,)).trace(Recipe(4, attention=attention))
    fused = [op for op in trace.ops if isinstance(op.kind, Attention) and op.phase is Phase.FORWARD]
    assert [cast(Attention, op.kind).window for op in fused] == windows
    assert [len(op.inputs) for op in fused] == [inputs, inputs, 3][: len(fused)]
    heads = {op.inputs[1].shape[1] for op in fused[:2]}
    assert heads == {"flash": {2}, "sdpa": {4}, "eager": set()}[attention]


def test_a_boolean_mask_is_a_bias_of_every_layer_in_the_format_of_its_queries() -> None:
    trace = find_model(live("mistral"), (16,)).trace(Recipe(4, precision="amp_bf16"))
    biases = [op.inputs[3] for op in trace.ops if isinstance(op.kind, Attention) and op.phase is Phase.FORWARD]
    assert [(t.shape, t.dtype) for t in biases] == [((4, 1, 16, 16), DType.BFLOAT16)] * 2
    assert len({t.name for t in biases}) == 2


def test_encoder_and_decoder_have_inputs_of_their_own() -> None:
    trace = traced(live("t5"), attention_mask=PADDED, labels=IDS[:, :5])
    assert [t.shape for t in trace.inputs] == [(1, 16), (1, 5), (1, 16)]
    assert {op.phase for op in trace.ops} == set(Phase)


def test_a_configuration_a_class_a_live_model_and_a_reference_are_the_same() -> None:
    config = transformers.BertConfig(**SIZES)
    text = ", ".join(f"{name}={value}" for name, value in SIZES.items())
    answers = [
        ec.forecast(model, device="A100", batch=8, input_shape=(16,))
        for model in (config, live("bert"), f"hf:BertConfig({text})")
    ]
    assert len({answer.parameters for answer in answers}) == 1
    assert len({answer.step_seconds.mid for answer in answers}) == 1
    of_a_class = ec.forecast(transformers.ResNetForImageClassification, device="A100", batch=8).parameters
    assert of_a_class is not None
    assert of_a_class > 10**7


def test_peft_trains_the_adapters_alone() -> None:
    peft = pytest.importorskip("peft", reason="peft is not installed")
    wrapped = peft.get_peft_model(live("llama"), peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
    trace = traced(wrapped, attention_mask=WHOLE)
    assert sum(p.elements for p in trace.parameters if p.trainable) == 2 * 2 * (4 * 64 + 64 * 4)
    assert trace.flops["backward"] < 1.5 * trace.flops["forward"]
    packed = find_model(Workload(wrapped, {"input_ids": IDS, "labels": IDS})).trace(
        Recipe(4, freeze=("*base_layer*",), quantize="nf4")
    )
    assert any(op.name.endswith(".dequantize") for op in packed.ops)


def test_gradient_checkpointing_of_the_model_is_honoured() -> None:
    model = live("llama")
    plain = traced(model)
    model.gradient_checkpointing_enable()
    again = traced(model)
    assert again.flops["backward"] > 1.3 * plain.flops["backward"]
    assert again.flops["forward"] == plain.flops["forward"]


def test_four_bits_of_a_configuration_are_read(tmp_path: Path) -> None:
    quantization = {"quant_method": "bitsandbytes", "load_in_4bit": True}
    values = {"model_type": "llama", **SIZES, "quantization_config": quantization}
    (tmp_path / "config.json").write_text(json.dumps(values), encoding="utf-8")
    trace = hf_model(f"hf:{tmp_path}", (16,)).trace(Recipe(4, lora=4))
    assert any(op.name.endswith(".dequantize") for op in trace.ops)


def test_code_beside_a_configuration_is_never_followed(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("open('ran', 'w')\nraise SystemExit\n", encoding="utf-8")
    values = {
        "model_type": "llama",
        "auto_map": {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"},
        **SIZES,
    }
    (tmp_path / "config.json").write_text(json.dumps(values), encoding="utf-8")
    assert hf_model(f"hf:{tmp_path}", (16,)).trace(Recipe(4)).parameters
    values["model_type"] = "evil"
    (tmp_path / "config.json").write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(BadInput, match=r"no model_type called 'evil'.*never run"):
        hf_model(f"hf:{tmp_path}", (16,))
    assert not (tmp_path / "ran").exists()
    assert not Path("ran").exists()


def test_eight_threads_leave_transformers_and_the_filters_of_warnings_as_they_were() -> None:
    from transformers import masking_utils, modeling_utils

    places: tuple[Any, ...] = (masking_utils, modeling_utils, torch, torch.nn.functional, torch.cuda, torch.Tensor)
    before = [dict(vars(place)) for place in places]
    a_dropout = torch.ops.aten.dropout(torch.empty(4, device="meta", requires_grad=True), 0.5, True).grad_fn
    filters, level = list(warnings.filters), logging.getLogger("transformers").level
    text = ", ".join(f"{name}={value}" for name, value in {**SIZES, "num_hidden_layers": 1}.items())

    def capture(number: int) -> int:
        return len(hf_model(f"hf:BertConfig({text})", (8 + number % 2,)).trace(Recipe(4)).ops)

    with ThreadPoolExecutor(8) as pool:
        counts = set(pool.map(capture, range(16)))
    assert len(counts) == 1
    after = [{name: vars(place).get(name) for name in known} for place, known in zip(places, before, strict=True)]
    assert all(now[name] is then[name] for now, then in zip(after, before, strict=True) for name in then)
    again = torch.ops.aten.dropout(torch.empty(4, device="meta", requires_grad=True), 0.5, True).grad_fn
    assert type(again) is type(a_dropout)  # kernels of CUDA are put in its place while a capture runs
    assert list(warnings.filters) == filters
    assert logging.getLogger("transformers").level == level


def test_a_scan_written_in_python_says_that_fused_kernels_are_not_modelled() -> None:
    model = transformers.MambaForCausalLM(
        transformers.MambaConfig(hidden_size=16, num_hidden_layers=1, state_size=4, vocab_size=50)
    )
    inputs = torch.ones(2, 64, dtype=torch.long)
    trace = find_model(Workload(model, {"input_ids": inputs, "labels": inputs})).trace(Recipe(4))
    assert any("a fused kernel (a scan) would be faster and is not modelled" in note for note in trace.notes)
