import json
from pathlib import Path
from typing import Any

import pytest
from tests.every import every

import epochcast as ec
from epochcast.describe.capture.zoo import ZOO, zoo_model
from epochcast.describe.datasets import datasets
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace, trace_from
from epochcast.errors import BadInput
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.job_alternatives import without_replaced
from epochcast.predict.forecast.job_data import Data, data_of, fed_by, token_count
from epochcast.predict.forecast.placement import place
from epochcast.predict.forecast.session import Session
from epochcast.surfaces.cli.command_line import run

OPENWEBTEXT = 9_035_582_198
SMALL = ("gpt2", "bert_base", "t5_small", "lstm", "opt_125m", "gnmt", "transformer")


def trace(name: str, shape: tuple[int, ...] | None = None) -> Trace:
    return zoo_model(name, shape).trace(Recipe(1))


def data(model: str = "gpt2", shape: tuple[int, ...] | None = None, **options: Any) -> Data:
    job = Job(model, input_shape=shape, **options)
    return data_of(job, zoo_model(model, job.longest_shape).trace(Recipe(1)))


def answer(model: CostModel, name: str = "gpt2", **options: Any) -> Forecast:
    gpus = options.pop("gpus", 1)
    return forecast_job(Job(name, **{"batch": 4, **options}), place("A100", gpus=gpus), Session(model))


# A corpus of tokens is not a corpus of samples: GPT-2 would take a thousand times as long.
def test_a_corpus_is_cut_into_sequences() -> None:
    assert data(dataset="openwebtext").samples == OPENWEBTEXT // 1024
    assert data(shape=(256,), dataset="openwebtext").samples == OPENWEBTEXT // 256
    assert data(dataset="openwebtext").validation_samples == 4_434_897 // 1024


def test_the_tokens_of_an_epoch_are_those_of_the_corpus(per_kernel: CostModel) -> None:
    forecast = answer(per_kernel, dataset="wikitext-103", batch=8, gpus=2)
    assert forecast.steps_per_epoch == -(-103_227_021 // 1024 // 16)
    assert forecast.tokens == pytest.approx(103_227_021, rel=1e-4)


# 300B tokens at 0.5M tokens a step: nanoGPT's 600,000 steps, to within what fills no step.
def test_tokens_count_the_whole_training(per_kernel: CostModel) -> None:
    forecast = answer(per_kernel, tokens=300 * 10**9, batch=12, accumulate=5, gpus=8)
    assert (forecast.global_batch, forecast.epochs) == (480, 1)
    assert forecast.steps_per_epoch == pytest.approx(300e9 / 491_520, abs=1)
    assert forecast.tokens == pytest.approx(300e9)


def test_tokens_of_a_corpus_are_epochs_of_it(per_kernel: CostModel) -> None:
    both = answer(per_kernel, tokens=300 * 10**9, dataset="openwebtext", checkpoints_per_epoch=0, validation_samples=0)
    alone = answer(per_kernel, tokens=300 * 10**9, checkpoints_per_epoch=0)
    assert both.epochs == pytest.approx(300e9 / OPENWEBTEXT, rel=1e-6)
    assert both.total_seconds is not None and alone.total_seconds is not None
    assert both.total_seconds.mid == pytest.approx(alone.total_seconds.mid, rel=1e-4)
    assert Forecast.from_dict(json.loads(json.dumps(both.as_dict()))) == both


def test_a_language_model_has_tokens_per_second_and_others_have_none(per_kernel: CostModel) -> None:
    words = answer(per_kernel, gpus=2).as_dict()
    assert words["tokens_per_second"] == pytest.approx(1024 * words["samples_per_second"])
    assert words["tokens_per_second_per_gpu"] == pytest.approx(words["tokens_per_second"] / 2)
    assert words["images_per_second"] is None
    pictures = answer(per_kernel, "resnet18").as_dict()
    assert pictures["images_per_second"] == pictures["samples_per_second"]
    assert pictures["tokens_per_second"] is pictures["tokens_per_second_per_gpu"] is pictures["tokens"] is None


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("bert_base", {"dataset": "imagenet"}, "bert_base takes text, imagenet-1k is images: choose another"),
        ("resnet50", {"dataset": "openwebtext"}, "resnet50 takes images, openwebtext is text: choose another"),
        ("resnet50", {"dataset": "openwebtext", "samples": 1000}, "resnet50 takes images, openwebtext is text"),
        ("resnet50", {"dataset": "ucf101"}, "resnet50 takes images, ucf101 is videos"),
        ("dlrm", {"dataset": "imagenet"}, "dlrm takes numbers, imagenet-1k is images"),
        ("resnet50", {"tokens": 10**9}, "`tokens` is for language models: resnet50 takes images"),
        ("resnet50", {"lengths": "mean=9,max=20,packed"}, "`lengths` is for language models"),
    ],
)
def test_data_of_another_kind_is_refused(model: str, options: dict[str, Any], message: str) -> None:
    job = Job(model, **options)
    with pytest.raises(BadInput) as caught:
        data_of(job, trace(model))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("model", "dataset"),
    [("r3d_18", "ucf101"), ("deepspeech2", "common-voice"), ("mnist_cnn", "mnist"), ("resnet18", "coco")],
)
def test_data_of_the_networks_kind_is_taken(model: str, dataset: str) -> None:
    assert data_of(Job(model, dataset=dataset), trace(model)).samples


def test_images_may_be_rows_of_numbers() -> None:
    def perceptron(batch: int) -> Graph:
        b = Builder("perceptron", batch)
        return b.finish(b.linear(b.input("pixels", (784,)), 10, name="out"))

    flat = trace_from(perceptron, Recipe(1))
    assert data_of(Job("resnet18", dataset="mnist"), flat).samples == 60_000
    with pytest.raises(BadInput, match="takes numbers, cifar10 is images"):
        data_of(Job("resnet18", dataset="cifar10"), flat)


def test_every_data_set_suits_some_network_and_not_every_one() -> None:
    traces = [trace(name) for name in ("resnet18", "gpt2", "r3d_18", "deepspeech2", "mnist_cnn")]
    for dataset in datasets():
        suits = []
        for one in traces:
            try:
                suits.append(data_of(Job("resnet18", dataset=dataset.name), one).samples is not None)
            except BadInput:
                suits.append(False)
        assert any(suits) and not all(suits), dataset.name


@every("name", SMALL)
def test_language_models_of_the_zoo_take_text_of_their_length(name: str) -> None:
    one = trace(name)
    assert fed_by(one) == "text"
    assert token_count(one) == one.units_per_sample > 1
    assert name in ZOO


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokens": 10**9, "samples": 1000}, "a job counts its data once"),
        ({"tokens": 10**9, "epochs": 2}, "`tokens` counts the whole training: leave `epochs` out"),
        ({"lengths": "mean=9,max=20,packed", "input_shape": (20,)}, "`lengths` has the maximum"),
    ],
)
def test_data_is_counted_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as caught:
        Job("gpt2", **options)
    assert str(caught.value).startswith(message)


def test_the_command_line_reads_letters_and_names_its_flags(capsys: pytest.CaptureFixture[str]) -> None:
    common = ["forecast", "gpt2", "--device", "A100", "--batch", "8"]
    assert run([*common, "--tokens", "1.5B", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] == pytest.approx(1.5e9, rel=1e-5)
    assert run([*common, "--tokens", "many"]) == 2
    assert "'many' is no whole number; write it like 300B" in capsys.readouterr().err
    assert run([*common, "--tokens", "3B", "--samples", "52k"]) == 2
    assert run([*common, "--dataset", "imagenet"]) == 2
    printed = capsys.readouterr().err.splitlines()
    assert printed[-1] == (
        "epochcast: gpt2 takes text, imagenet-1k is images: choose another data set, or give --samples alone"
    )


def test_what_is_said_later_takes_other_ways_back() -> None:
    assert without_replaced({"samples": 5, "epochs": 9, "batch": 2}, {"tokens": 10**9}) == {"batch": 2}
    assert without_replaced({"tokens": 10**9, "batch": 2}, {"samples": 5, "global_batch": None}) == {"batch": 2}


def test_an_option_beside_a_job_replaces_its_count() -> None:
    job = Job("gpt2", batch=4, dataset="wikitext-2", epochs=3)
    again = ec.forecast(job, device="A100", tokens=10**6)
    assert again.tokens == pytest.approx(10**6, rel=1e-2)
    assert ec.forecast(Job("gpt2", batch=4, tokens=10**6), device="A100", samples=50).samples == 50


def test_a_job_file_counts_tokens_and_reads_lengths_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "epochcast.toml").write_text(
        '[defaults]\nmodel = "gpt2"\ndevice = "A100"\nepochs = 3\nbatch = 4\n'
        '[[job]]\nname = "pretrain"\ntokens = "1B"\n'
        '[[job]]\nname = "tune"\nsamples = "2k"\nlengths = "file=lengths.txt,max=256,packed"\n'
    )
    (tmp_path / "lengths.txt").write_text("10 100 190\n")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert run(["forecast", "--job", "pretrain", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] == pytest.approx(1e9, rel=1e-4)
    assert run(["forecast", "--job", "pretrain", "--samples", "100", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == 100
    assert run(["forecast", "--job", "tune", "--json"]) == 0
    tuned = json.loads(capsys.readouterr().out)
    assert (tuned["samples"], tuned["epochs"], tuned["sequence_length"]) == (-(-2000 * 100 // 256), 3, 256)


def test_scaling_plan_and_advice_count_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--dataset", "wikitext-2", "--precision", "amp_bf16", "--lengths", "mean=60,max=128,padded", "--json"]
    assert run(["scaling", "gpt2", "--device", "A100", "--gpus", "1,2", "--batch", "8", *options]) == 0
    row = json.loads(capsys.readouterr().out)["rows"][1]
    assert row["tokens_per_second"] == pytest.approx(60 * row["samples_per_second"])
    assert row["tokens_per_second_per_gpu"] == pytest.approx(row["tokens_per_second"] / 2)
    assert 0 < row["mfu"] < 1
    assert run(["advise", "gpt2", "--device", "A100", "--max-batch", "16", *options]) == 0
    advice = json.loads(capsys.readouterr().out)
    assert advice["tokens_per_second"] == pytest.approx(60 * advice["samples_per_second"])
    assert run(["plan", "gpt2", "--batch", "32", "--gpus", "1", "--devices", "A100", *options]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["samples"], plan["tokens_per_sample"]) == (2_088_628 // 60, 60.0)


def test_tokens_may_be_kept_as_floats() -> None:
    def reader(batch: int) -> Graph:
        b = Builder("reader", batch)
        words = b.embedding(b.input("words", (20,)), 100, 8, name="table")
        return b.finish(b.linear(words, 100, name="out"))

    one = trace_from(reader, Recipe(1))
    assert (fed_by(one), token_count(one)) == ("text", 20)
