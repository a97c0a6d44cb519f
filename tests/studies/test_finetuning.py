from pathlib import Path

import polars as pl
import pytest

from studies.memory.finetuning import Tuned, _as_litgpt, _question, _tuned, section

ROW = {
    "task": "finetune phi-2/lora.yaml",
    "gpus": 1,
    "batch_per_gpu": 4.0,
    "peak_memory_bytes": 1e10,
    "precision": "bf16-true",
}


def test_a_configuration_says_rank_and_layers() -> None:
    name, way, recipe, tokens = _question(ROW)
    assert (name, way, recipe.batch, recipe.lora, tokens) == ("phi_2", "lora", 4, 8, 512)
    assert "dense_h_to_4h" in recipe.lora_targets
    name, way, recipe, tokens = _question({**ROW, "task": "finetune llama-2-7b/qlora.yaml"})
    assert (way, recipe.lora, recipe.lora_targets, recipe.quantize) == ("qlora", 32, (), "nf4-old")


def test_rank_8_beside_queries_and_values_trains_what_the_a100_rows_say() -> None:
    """4,194,304 for Llama 2 7B."""
    row = {**ROW, "task": "Finetuning with LoRA on 1 GPU", "model": "Llama 2 7 B", "batch_per_gpu": 1.0}
    name, _, recipe, tokens = _question(row)
    trace = _as_litgpt(name, 16).trace(recipe)
    assert sum(p.elements for p in trace.parameters if p.trainable) == 4_194_304
    assert tokens == 1304


def test_the_output_is_never_tied() -> None:
    """Gemma 2B's table of 256,000 words twice."""
    assert _as_litgpt("gemma_2b", 16).graph(1).parameter_count == 2_506_172_416 + 256000 * 2048


def test_what_cannot_be_is_named_and_not_scored() -> None:
    real = Tuned("a", "lora", 1, 512, 10e9, 11e9, 9e9)
    text = "\n".join(section([real, Tuned("b", "full", 1, 512, 5e9, 12e9, 8e9)], {"why not": 3}))
    assert "| LoRA | 1 | 10.0% | 10.0% | +10.0% |" in text
    assert "Not scored: b (5.0 GB)" in text
    assert "3 rows, why not" in text


@pytest.mark.needs_data
def test_lora_on_phi_is_forecast_within_a_sixth(data: Path) -> None:
    table = pl.read_parquet(data / "runs.parquet").filter(
        pl.col("model") == "phi-1.5 1.3 B", pl.col("task") == "Finetuning with LoRA on 1 GPU"
    )
    points = [_tuned(row) for row in table.iter_rows(named=True) if row["precision"].endswith("None")]
    assert [point.batch for point in points] == [1, 2, 4]
    assert all(0.84 < point.ratio < 1.1 for point in points)
