import pytest

from epochcast.measure.tables.precision_words import Quantisation
from epochcast.measure.tables.run_network import NamedNetwork
from epochcast.measure.tables.run_tuning import run_tuning

TINY = NamedNetwork("tinyllama_1_1b", None)

# TinyLlama has 1.1 billion parameters: 1000 tokens a second are 6.6 teraflop/s where all of it is trained.
LORA = {"lora": 16, "lora_targets": ("q_proj", "k_proj", "v_proj")}


def row(flops: float, task: str = "finetuning") -> dict[str, str]:
    return {"task": task, "note": f"TP=1; Model TFLOP / sec / GPU={flops}; tokens/s/GPU=1000; VP=2"}


@pytest.mark.parametrize(("flops", "trained"), [(6.7, {}), (4.4, LORA)])
def test_four_flops_for_a_parameter_and_a_token_are_lora(flops: float, trained: dict[str, object]) -> None:
    assert run_tuning(row(flops), TINY).options == trained


def test_only_fine_tuning_is_looked_at() -> None:
    assert run_tuning(row(4.4, "pretraining"), TINY).options == {}


def test_a_row_that_does_not_tell_trains_everything() -> None:
    assert run_tuning({"task": "finetuning", "note": "TP=2"}, TINY).options == {}


SIZED = NamedNetwork("decoder:layers=2,hidden=256,heads=4,vocab=1000", None, is_sized=True)


@pytest.mark.parametrize(
    ("note", "rank", "targets"),
    [
        ("peft lora r=16.0 target q_proj k_proj v_proj o_proj c_attn; gradient checkpointing on", 16, ("qkv", "out")),
        ("LORA r=64 targets ['v_proj', 'down_proj']; trainable 229376", 64, ("qkv", "down")),
        ("without unsloth, rank 8 on all linear; 448 s for 20 steps", 8, ("all-linear",)),
        ("torch 2.13; r=32 q,v; LoRA weights fp32", 32, ("qkv",)),
    ],
)
def test_rank_and_layers_are_read_from_the_note(note: str, rank: int, targets: tuple[str, ...]) -> None:
    tuning = run_tuning({"task": "lora_finetuning", "note": note}, SIZED)
    assert tuning.options == {"lora": rank, "lora_targets": targets, "quantize": "none"}
    assert tuning.notes == ()


def test_columns_come_before_the_note() -> None:
    cells = {"method": "lora", "lora_rank": 4, "lora_targets": "q_proj,v_proj", "note": "r=64 all attention"}
    assert run_tuning(cells, TINY).options == {"lora": 4, "lora_targets": ("q_proj", "v_proj"), "quantize": "none"}


def test_what_a_row_does_not_say_is_assumed_with_a_note() -> None:
    tuning = run_tuning({"task": "lora_finetuning"}, TINY)
    assert tuning.options == {"lora": 16, "lora_targets": ("q_proj", "v_proj"), "quantize": "none"}
    assert tuning.notes == (
        "the rank of LoRA is not given: 16 is assumed",
        "the layers of LoRA are not given: attention is assumed",
    )


def test_qlora_keeps_the_base_in_four_bits_and_adapts_every_linear_layer() -> None:
    assert run_tuning({"method": "qlora", "note": "r=8"}, TINY).options == {
        "lora": 8, "lora_targets": ("all-linear",), "quantize": "nf4",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("quantisation", "base", "note"),
    [
        (Quantisation(4, "nf4 (bitsandbytes)"), "nf4", ()),
        (Quantisation(4, "bnb.nf4-dq"), "nf4-dq", ()),
        (Quantisation(8, "int8 (bnb)"), "int8", ()),
        (Quantisation(4, "int4 (GPTQ)"), "gptq", ()),
        (
            Quantisation(4, "int4-quanto"),
            "nf4",
            ("a base quantised as int4-quanto is answered as 4 bits of bitsandbytes",),
        ),
        (
            Quantisation(8, "int8-other"),
            "int8",
            ("a base quantised as int8-other is answered as 8 bits of bitsandbytes",),
        ),
        (Quantisation(None, "other"), "none", ("a base quantised as other is answered as not quantised",)),
    ],
)
def test_a_quantised_base_is_answered_as_the_nearest(
    quantisation: Quantisation, base: str, note: tuple[str, ...]
) -> None:
    tuning = run_tuning({"task": "lora_finetuning", "note": "r=8 targets ['q_proj']"}, TINY, quantisation)
    assert (tuning.options["quantize"], tuning.notes) == (base, note)


def test_other_adapters_are_answered_as_lora() -> None:
    tuning = run_tuning({"task": "peft_finetuning LOKR", "note": "LOKR r=32 targets ['q_proj']"}, TINY)
    assert tuning.options["lora"] == 32 and tuning.notes == ("the adapter LOKR is answered as LoRA",)


def test_a_quantised_base_without_an_adapter_is_not_kept_quantised() -> None:
    tuning = run_tuning({"task": "inference"}, TINY, Quantisation(4, "bnb.nf4"))
    assert tuning.options == {} and "bnb.nf4" in tuning.notes[0]
