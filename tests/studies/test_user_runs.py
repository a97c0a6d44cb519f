"""What people measured: the commands ask what the study asks, and the page says what was found."""

import shlex
from dataclasses import replace
from typing import Any

import pytest

from epochcast.measure.tables.run_table import MeasuredRun, read_runs
from epochcast.predict.forecast.job import Job
from studies.user_runs.commands import OPTIONS, command_of
from studies.user_runs.page import Figures, asked_fraction, page, reason_of, time_of, unsaid
from studies.user_runs.rows_file import read_rows, rows_csv
from studies.user_runs.scored_runs import USERS, Ratios, ScoredRun, task_of

ROWS: list[dict[str, Any]] = [
    {
        **{"model": "meta-llama/Llama-2-7b-hf", "device": "A100", "gpus": 2, "batch_per_gpu": 2, "step_seconds": 1.0},
        **{"method": "qlora", "grad_accum": 4, "input_shape": "max 2048 (alpaca)", "recompute": "full"},
        **{"note": "r=16 all linear", "framework": "transformers+peft", "optimizer": "paged_adamw_8bit"},
    },
    {
        **{"model": "timm:vit_huge_patch14_224", "device": "RTX 4090", "batch_per_gpu": 8, "step_seconds": 1.0},
        **{"precision": "amp_bf16", "compiled": "inductor", "input_shape": "3x224x224", "optimizer": "adamw (fused)"},
    },
]


def asked(command: str) -> Job:
    """The job of a command's options, read as the command line reads them."""
    words = shlex.split(command)
    assert words[:2] == ["epochcast", "forecast"]
    flags = {option.command_flag: option for option in OPTIONS.values()}
    values: dict[str, Any] = {"model": words[2]}
    rest = words[3:]
    while rest:
        flag = rest.pop(0)
        option = flags.get(flag) or flags.get(f"--{flag.removeprefix('--no-')}")
        if option is None:
            rest.pop(0)  # where it runs
        elif option.type is bool and not option.words:
            values[option.name] = not flag.startswith("--no-")
        elif option.type == tuple[str, ...]:
            values[option.name] = (*values.get(option.name, ()), rest.pop(0))
        else:
            word = rest.pop(0)
            values[option.name] = option.read(option.type(word) if option.type in (int, float) else word)
    return Job(**values)


def test_a_command_asks_for_the_job_of_its_row() -> None:
    runs, failures = read_runs(ROWS)
    assert not failures
    for run in runs:
        assert replace(asked(command_of(run)), assumed=run.job.assumed) == run.job  # a flag is said, not assumed


def test_a_command_has_the_words_of_a_user() -> None:
    ((run, _), _) = read_runs(ROWS)
    command = command_of(run)
    assert command.startswith("epochcast forecast llama2_7b --device A100-SXM4-40GB --batch 2 --gpus 2 --strategy ")
    for words in ("--accumulate 4", "--lora 16 --lora-target all-linear", "--quantize nf4", "--checkpointing full"):
        assert words in command


@pytest.mark.parametrize(
    ("row", "task"),
    [
        ({"task": "causal-lm-finetune", "method": "qlora"}, "language models: LoRA on a quantised base"),
        (
            {"task": "lora_finetuning", "precision": "bf16 quant=int4 (GPTQ)"},
            "language models: LoRA on a quantised base",
        ),
        ({"task": "peft_finetuning IA3"}, "language models: other adapters of PEFT"),
        ({"task": "diffusion lora_finetuning"}, "diffusion"),
        ({"task": "causal-lm-finetune", "method": "full"}, "language models: all parameters"),
    ],
)
def test_rows_are_grouped_by_what_is_trained(row: dict[str, Any], task: str) -> None:
    assert task_of(row) == task


def scored(row: str, **values: Any) -> ScoredRun:
    return ScoredRun(USERS, row, "someone#1", "diffusion", "net (5B)", "A100", "high", **values)


GOOD = scored("a", time=Ratios(0.8, 1.1, 1.5), memory=Ratios(0.9, 1.0, 1.1), command="epochcast forecast a")
FAR = scored("b", time=Ratios(3.0, 4.0, 5.0), command="epochcast forecast b")
UNSURE = scored("c", time=Ratios(0.9, 3.2, 6.0), command="epochcast forecast c")
REFUSED = scored("d", refused="no model called 'net (5B)'; nothing near")


def test_figures_are_of_the_rows_that_have_them() -> None:
    figures = Figures.of([GOOD, FAR, UNSURE, REFUSED], time_of)
    assert (figures.n, figures.refused) == (3, 1)
    assert figures.holds == pytest.approx(2 / 3)
    assert figures.mean == pytest.approx((0.1 + 3.0 + 2.2) / 3)
    assert asked_fraction([GOOD, FAR, UNSURE, REFUSED]) == 0.75


def test_a_wide_interval_says_that_an_answer_is_unsure() -> None:
    assert [run.row for run in unsaid([GOOD, FAR, UNSURE])] == ["b"]


def test_the_page_shows_failures_first() -> None:
    text = page({USERS: [GOOD, FAR, UNSURE, REFUSED]})
    places = [text.index(words) for words in ("wrong by more than 2 ×: 2", "Not forecast: 1", "By task")]
    assert places == sorted(places)
    assert "| b | someone#1 | 4.00 | 3.00 … 5.00 | `epochcast forecast b` |" in text
    assert reason_of(REFUSED) == "no model called that name"


def test_the_file_of_rows_is_read_again() -> None:
    runs = [GOOD, FAR, REFUSED]
    assert read_rows(rows_csv(runs)) == runs


def test_runs_on_several_nodes_name_them() -> None:
    (row, _) = ROWS
    runs: list[MeasuredRun] = read_runs([{**row, "gpus": 16, "nodes": 2}])[0]
    assert "--gpus 16 --nodes 2 --strategy" in command_of(runs[0])
