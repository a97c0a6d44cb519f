import pytest

from epochcast.measure.tables.precision_words import named_precision


@pytest.mark.parametrize(
    ("source", "words", "name", "weights"),
    [
        ("", "fp16(pure half)", "fp16", None),
        ("", "fp16 (paddle O2)", "amp_fp16", None),
        ("", "bf16-true", "bf16", None),
        ("", "bf16-mixed", "amp_bf16", None),
        ("", "mixed_float16", "amp_fp16", None),
        ("", "AMP", "amp_fp16", None),
        ("", "fp16", "fp16", None),
        ("lambda_tensorflow", "fp16", "amp_fp16", None),
        ("", "fp16-true", "fp16", "fp16"),
        ("", "fp16 O2", "amp_fp16", "fp16+master"),
        ("", "tf32 (torch 1.10 default, inferred)", "tf32", None),
        ("", "tf32 (convolutions), fp32 (matmul)", "fp32", None),
        ("", "fp32 (TF32 in convolutions)", "fp32", None),
        ("", "fp32 (TF32 matmul on in the script)", "tf32", None),
        ("", "fp32 (or as configured)", "fp32", None),
        ("", "amp_fp8", "fp8", None),
        ("", "fp8 tensorwise", "fp8", None),
        ("", "mxfp8 (rceil)", "mxfp8", None),
        ("", "amp_bf16 weights bf16", "amp_bf16", "bf16"),
        ("", "amp_fp16 weights fp16", "amp_fp16", "fp16"),
    ],
)
def test_a_precision_by_another_name(source: str, words: str, name: str, weights: str | None) -> None:
    precision = named_precision(source, words)
    assert (precision.name, precision.weights, precision.quantisation) == (name, weights, None)


@pytest.mark.parametrize(
    ("words", "name", "bits", "base"),
    [
        ("amp_fp16 quant=int4 (GPTQ)", "amp_fp16", 4, "gptq"),
        ("amp_bf16 quant=nf4 (bitsandbytes)", "amp_bf16", 4, "nf4"),
        ("amp_fp16 quant=int8 (bitsandbytes)", "amp_fp16", 8, "int8"),
        ("bf16 base quant=int8-sdnq-hadamard", "bf16", 8, "sdnq"),
        ("bf16 quant=int8 (gptq)", "bf16", 8, "w8"),
        ("bf16 base quant=fp8-torchao", "bf16", 8, "fp8"),
        ("bf16 base quant=fp8wo-torchao", "bf16", 8, "w8"),
        ("bf16-true quant=bnb.nf4-dq", "bf16", 4, "nf4-dq"),
    ],
)
def test_a_quantised_base_has_bits_and_a_library(words: str, name: str, bits: int, base: str | None) -> None:
    precision = named_precision("", words)
    assert precision.name == name and precision.quantisation is not None
    assert (precision.quantisation.bits, precision.quantisation.base) == (bits, base)


@pytest.mark.parametrize("words", ["unknown (fp16 or bf16)", "posit16", "fp16 and something else"])
def test_words_that_name_no_precision_are_left_for_the_job_to_refuse(words: str) -> None:
    assert named_precision("", words).name == words


def test_no_quantisation_may_be_written_down() -> None:
    assert named_precision("", "bf16-true quant=None").quantisation is None
