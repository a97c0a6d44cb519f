"""Liger's and Unsloth's kernels on a decoder (`kernels`)."""

import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.op_kinds import Loss
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput, UnknownName
from epochcast.predict.forecast.job import Job
from epochcast.predict.memory.peak import peak_memory

TINY = zoo_model("tinyllama_1_1b", (256,))
EAGER, LIGER = (TINY.trace(Recipe(4, optimizer="adamw", precision="bf16", kernels=name)) for name in ("none", "liger"))


def test_a_norm_is_one_kernel_and_a_residual_stays_another() -> None:
    def kernels(trace: object, layer: str) -> int:
        rows = zip(trace.layers, trace.columns.phase, strict=True)  # type: ignore[attr-defined]
        forward = tuple(Phase).index(Phase.FORWARD)
        return sum(name.startswith(layer) and phase == forward for name, phase in rows)

    assert kernels(EAGER, "model.layers.3.input_layernorm") > 3
    assert kernels(LIGER, "model.layers.3.input_layernorm") == 1
    assert len(LIGER.columns) < len(EAGER.columns)


def test_the_scores_of_all_tokens_are_never_in_memory() -> None:
    scores = 4 * 256 * 32000
    assert any(t.elements == scores for op in EAGER.ops for t in op.outputs)
    assert not any(t.elements == scores for op in LIGER.ops for t in op.outputs)
    # 32,000 words on 2,048 channels: 16 chunks
    assert sum(isinstance(op.kind, Loss) and not op.is_gradient for op in LIGER.ops) == 16


def test_less_is_held_and_less_is_moved() -> None:
    eager, liger = (TINY.trace(Recipe(16, precision="bf16", lora=8, kernels=name)) for name in ("none", "liger"))
    assert peak_memory(liger).allocated_bytes < 0.7 * peak_memory(eager).allocated_bytes
    assert LIGER.columns.bytes.sum() < EAGER.columns.bytes.sum()
    assert LIGER.flops["matrix"] == EAGER.flops["matrix"]


def test_unsloth_recomputes_blocks_from_inputs_in_host_memory() -> None:
    recipe = Job("tinyllama_1_1b", batch=1, kernels="unsloth").recipe(1)
    assert recipe.checkpointing is True and recipe.offload_activations
    assert not Job("tinyllama_1_1b", batch=1, kernels="liger").recipe(1).checkpointing


def test_kernels_are_for_language_models_and_have_names() -> None:
    with pytest.raises(BadInput, match="--kernels: resnet18 scores no vocabulary"):
        zoo_model("resnet18", None).trace(Recipe(2, kernels="liger"))
    with pytest.raises(UnknownName, match="no kernels called 'ligr'; "):
        Job("gpt2", batch=1, kernels="ligr")
