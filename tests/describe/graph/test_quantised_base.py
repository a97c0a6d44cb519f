"""Frozen bases in few bits: their bytes by hand, what products allocate, and how the rest is kept."""

from math import prod

import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.op import Gradient, Op, Phase
from epochcast.describe.graph.op_kinds import Matmul
from epochcast.describe.graph.precision import find_precision
from epochcast.describe.graph.quantised_base import BASES, joined_base, precision_of_base, with_quantised_base
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.predict.forecast.job import Job
from epochcast.predict.memory.peak import peak_memory

TINY = zoo_model("tinyllama_1_1b", (64,))


def trace(base: str = "nf4", precision: str = "amp_bf16", **recipe: object) -> Trace:
    return TINY.trace(Recipe(2, optimizer="adamw", precision=precision, lora=8, quantize=base, **recipe))  # type: ignore[arg-type]


def formats(made: Trace, name: str) -> set[DType]:
    """Of an op's result, in the forward pass."""
    return {op.output.dtype for op in made.ops if op.phase is Phase.FORWARD and op.output.name == name}


# By hand, of a weight of 256 rows and 512 columns: 131,072 values.
@pytest.mark.parametrize(
    ("base", "stored_bytes"),
    [
        ("nf4", 65_536 + 4 * 2_048),
        ("nf4-dq", 65_536 + 2_048 + 4 * 8),
        ("int8", 131_072 + 4 * 256),
        ("w8", 131_072 + 4 * 256),
        ("gptq", 65_536 + 2 * 1_024 + 512 + 4 * 512),
        ("awq", 65_536 + 2 * 1_024 + 512),
    ],
)
def test_a_weight_and_its_scales_by_hand(base: str, stored_bytes: int) -> None:
    assert BASES[base].stored_bytes(Tensor((256, 512))) == stored_bytes


def test_linear_layers_are_quantised_and_the_head_is_not() -> None:
    """Half a byte and a sixteenth of each projection; tables, norms, the head and the adapters in four bytes."""
    made = trace()
    linear = sum(p.elements for p in made.parameters if not p.trainable and p.layer.endswith("proj"))
    rest = sum(p.elements for p in made.parameters) - linear
    assert peak_memory(made).breakdown["parameters"] == linear * 9 // 16 + 4 * rest


def test_one_weight_at_a_time_is_written_out_in_the_format_of_the_product() -> None:
    """Forward and for the data gradient; the first layer's queries and values need none."""
    ops = trace().ops
    written = [op for op in ops if op.name.endswith(".dequantize")]
    reading = [op for op in ops if isinstance(op.kind, Matmul) and "@written" in str(op.inputs + op.weights)]
    assert len(written) == len(reading)
    assert {op.gradient for op in reading} == {Gradient.NONE, Gradient.DATA}
    assert {op.output.dtype for op in written} == {DType.BFLOAT16}


def test_the_residual_stream_and_what_layers_make_of_it_are_in_float32() -> None:
    """`prepare_model_for_kbit_training` casts tables and norms up, `Linear4bit` answers in the format of its input."""
    made = trace()
    assert formats(made, "model.layers.3.mlp.gate_proj/out") == {DType.FLOAT32}
    pure = trace(precision="bf16")
    assert formats(pure, "model.layers.3.mlp.gate_proj/out") == {DType.BFLOAT16}
    assert peak_memory(made).timeline.live_bytes["activations"].max() > (
        1.4 * peak_memory(pure).timeline.live_bytes["activations"].max()
    )


def test_eight_bits_keep_inputs_and_allocate_int8_copies_and_int32_sums() -> None:
    made = trace("int8")
    gate = "model.layers.3.mlp.gate_proj/out"
    scratch = next(op for op in made.ops if op.name == f"{gate}.quantize")
    assert [t.dtype for t in scratch.outputs] == [DType.INT8, DType.INT32]
    assert [prod(t.shape) for t in scratch.outputs] == [2 * 64 * 2048, 2 * 64 * 5632]
    assert any(op.name.endswith(".kept") for op in made.ops)


def test_older_bitsandbytes_kept_the_inputs_of_its_products() -> None:
    """Before 0.43.2 of July 2024; taken for jobs on a PyTorch of before 2.4."""
    assert any(op.name.endswith(".kept") for op in trace("nf4-old").ops)
    assert not any(op.name.endswith(".kept") for op in trace("nf4").ops)
    job = Job("tinyllama_1_1b", batch=1, lora=8, four_bit=True, framework_version="2.1")
    assert job.recipe(1).quantize == "nf4-old"


def test_gptq_leaves_the_rest_in_half() -> None:
    assert precision_of_base("fp16", None, "gptq").name == "amp_fp16_half"
    made = trace("gptq", "amp_bf16_half")
    adapters = sum(p.elements for p in made.parameters if p.trainable)
    linear = [p.tensor for p in made.parameters if not p.trainable and p.layer.endswith("proj")]
    rest = sum(p.elements for p in made.parameters) - adapters - sum(t.elements for t in linear)
    packed = sum(BASES["gptq"].stored_bytes(t) for t in linear)
    assert peak_memory(made).breakdown["parameters"] == packed + 2 * rest + 4 * adapters


def test_eight_bits_of_weights_alone_are_dequantised_and_nothing_is_multiplied_in_them() -> None:
    made = trace("w8", "amp_bf16_half")
    names = [op.name for op in made.ops]
    assert any(name.endswith(".dequantize") for name in names)
    assert not any(name.endswith((".quantize", ".summed", ".kept")) for name in names)


def test_nothing_frozen_nothing_changed() -> None:
    made = TINY.trace(Recipe(2, optimizer="adamw", precision="bf16"))
    ops: tuple[Op, ...] = made.ops
    assert with_quantised_base(ops, made.parameters, BASES["nf4"], DType.BFLOAT16) == ops


# ---- what options mean --------------------------------------------------------------------------


def test_bf16_with_four_bits_is_what_the_usual_trainer_runs() -> None:
    """Autocast with float32 beside the quantised layers; given weights count."""
    job = Job("tinyllama_1_1b", batch=1, precision="bf16", lora=8, four_bit=True)
    assert (job.recipe(1).precision, job.recipe(1).quantize) == ("amp_bf16", "nf4")
    assert Job.from_dict(job.as_dict()) == job
    pure = Job("tinyllama_1_1b", batch=1, precision="bf16", weights="bf16", lora=8, four_bit=True)
    assert pure.recipe(1).precision == "bf16"
    assert find_precision(pure.recipe(1).precision).weights.name == "bf16"


def test_double_quantisation_is_four_bits_too() -> None:
    assert joined_base("nf4_dq", four_bit=True, eight_bit=False) == "nf4-dq"
    assert joined_base("none", four_bit=False, eight_bit=True) == "int8"
    with pytest.raises(BadInput, match="`quantize` int8 is not kept in 4 bits"):
        joined_base("int8", four_bit=True, eight_bit=False)
    with pytest.raises(BadInput, match="exclude each other"):
        joined_base("none", four_bit=True, eight_bit=True)


def test_libraries_that_quantise_inputs_by_operators_start_more_kernels() -> None:
    launched = {base: int(trace(base).columns.launches.sum()) for base in ("w8", "fp8", "sdnq")}
    products = sum(op.layer != "" and "dequantize" in op.name for op in trace("w8").ops if op.phase is Phase.FORWARD)
    # torchao's 20 forward; SDNQ's 12 forward and 11 backward, but for the layers in front of the first update
    assert launched["fp8"] - launched["w8"] == 20 * products
    assert 12 * products < launched["sdnq"] - launched["w8"] <= (12 + 11) * products
