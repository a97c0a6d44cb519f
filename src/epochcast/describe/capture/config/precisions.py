"""Precisions by the names that trainers give them."""

from collections.abc import Mapping

# Lightning: Trainer(precision=…), today's names and those before 2.0.
LIGHTNING: Mapping[str, str] = {
    "32": "fp32",
    "32-true": "fp32",
    "16": "amp_fp16",
    "16-mixed": "amp_fp16",
    "bf16": "amp_bf16",
    "bf16-mixed": "amp_bf16",
    "16-true": "fp16",
    "bf16-true": "bf16",
    "64": "fp64",
    "64-true": "fp64",
    "transformer-engine": "fp8",
    "transformer-engine-float16": "fp8",
}
# Accelerate and Hugging Face: mixed_precision=…
MIXED: Mapping[str, str] = {"no": "fp32", "fp16": "amp_fp16", "bf16": "amp_bf16", "fp8": "fp8"}
# Keras: the policy of a model or its layers. Without "mixed" everything is stored in that format.
KERAS: Mapping[str, str] = {
    "float32": "fp32",
    "mixed_float16": "amp_fp16",
    "mixed_bfloat16": "amp_bf16",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float64": "fp64",
}
# Mixed precision under DeepSpeed: weights in half, a copy in float32 with the optimizer.
WITH_MASTERS: Mapping[str, str] = {"amp_fp16": "fp16_deepspeed", "amp_bf16": "bf16_deepspeed"}
