"""Intervals as wide as what is not known, and a warning for every job that does something else than one would think."""

from functools import partial
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

import epochcast as ec
from epochcast.describe.capture.model import COMPILED_NOTE, BuiltModel
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.predict.cost.hosts import find_host, unknown_host
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.loader_queue import TOLD_HIGH, TOLD_LOW


def spread(answer: Forecast) -> float:
    return answer.step_seconds.high / answer.step_seconds.low


def told(answer: Forecast, words: str) -> list[str]:
    return [text for text in answer.warnings if words in text]


# ---- launches ------------------------------------------------------------------------------------


def test_the_width_of_an_unknown_host_holds_every_class_of_hosts_without_a_trainer() -> None:
    unknown = unknown_host().launch_seconds
    for name in ("workstation", "cloud", "old_server"):
        assert unknown.low < find_host(name).launch_seconds.mid < unknown.high
    assert 3 < unknown.high / unknown.low < 6


def test_a_step_bound_by_launches_is_as_uncertain_as_its_host() -> None:
    answers = [ec.forecast("mnist_cnn", device="H100", batch=1, host_class=name) for name in (None, "cloud", "20us")]
    widths = [spread(answer) for answer in answers]
    assert widths[0] > widths[2] > 1.4 and widths[1] > widths[2]
    assert told(answers[0], "of the step on an assumed host: set `host_class`.")
    assert not told(answers[1], "assumed host")


def test_a_class_of_hosts_is_as_wide_as_its_systems_and_what_runs_there_differ() -> None:
    workstation = find_host("workstation").launch_seconds
    assert workstation.low < 12e-6, "the fastest of its systems"
    assert workstation.high > 17e-6, "the slowest"


# ---- unknown ops ---------------------------------------------------------------------------------


def _mixed(fancy: int, batch: int) -> Graph:
    b = Builder("mixed", batch)
    x = b.input("x", (4096,))
    for place in range(8):
        x = b.linear(x, 4096, name=f"linear{place}")
        if place < fancy:
            x = b.opaque("fancy", [x], [x.shape], name=f"fancy{place}")[0]
    return b.finish(x, loss="none")


def test_unknown_ops_widen_a_step_by_their_share() -> None:
    answers = [
        ec.forecast(BuiltModel("mixed", partial(_mixed, k)), device="V100", batch=4096, mode="forward")
        for k in (0, 2, 8)
    ]
    assert [answer.opaque_ops for answer in answers] == [(), ("fancy",), ("fancy",)]
    relative = [answer.step_seconds.high / answer.step_seconds.mid for answer in answers]
    shares = [answer.answered_by.get("analytic", 0.0) for answer in answers]
    assert 0 == shares[0] < shares[1] < shares[2]
    for high, share in zip(relative[1:], shares[1:], strict=True):
        assert high >= 1 + 3 * share, "an unknown op may take 4.6 times as long"


# ---- loaders -------------------------------------------------------------------------------------


def test_a_step_that_waits_for_data_is_as_uncertain_as_its_loader() -> None:
    answer = ec.forecast("resnet50", device="H100", batch=64, precision="amp", loader_seconds=0.05, cpus=8, workers=4)
    step = answer.step_seconds
    assert answer.step_parts is not None and answer.step_parts.exposed_input > 0.8 * step.mid
    assert step.low < (TOLD_LOW + 0.05) * step.mid and step.high > (TOLD_HIGH - 0.05) * step.mid


def test_a_loader_that_keeps_up_widens_nothing() -> None:
    options: dict[str, Any] = {"device": "V100", "batch": 8}
    alone = ec.forecast("resnet50", **options)
    fed = ec.forecast("resnet50", loader_seconds=1e-4, cpus=16, workers=8, **options)
    assert spread(fed) == pytest.approx(spread(alone), rel=0.02)


def test_pictures_that_cannot_be_decoded_in_time_are_a_warning() -> None:
    fast = ec.forecast("resnet18", device="H100", batch=512, precision="amp")
    (text,) = told(fast, "Data loading may limit this job")
    assert "CPUs load" in text and "the GPU needs" in text and "Set `loader_seconds`" in text
    assert not told(ec.forecast("resnet152", device="T4", batch=16), "Data loading may limit")
    assert not told(ec.forecast("mnist_cnn", device="H100", batch=512), "Data loading"), "small arrays lie in memory"
    assert not told(ec.forecast("gpt2", device="H100", batch=8), "Data loading")
    given = ec.forecast("resnet18", device="H100", batch=512, precision="amp", loader_seconds=0.004)
    assert not told(given, "Data loading may limit")


@pytest.mark.parametrize("device", ["H100", "A100", "B200"])
def test_a_loader_left_out_on_a_fast_gpu_is_a_warning(device: str) -> None:
    """The processors of its usual machine could feed it, if all of them decode; few people start so many workers."""
    (text,) = told(ec.forecast("resnet50", device=device, batch=256, precision="amp"), "Data loading may limit")
    assert "4 workers per GPU load 889 images/s" in text and "or set `loader_seconds`" in text
    given = ec.forecast("resnet50", device=device, batch=256, precision="amp", loader_seconds=0.001)
    assert not told(given, "Data loading may limit")


# ---- jobs that do something else -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "precision", "text"),
    [
        ("V100", "fp8", "has no fp8 arithmetic: fp8 is computed in fp32; amp_fp16 runs on its tensor cores"),
        ("T4", "bf16", "has no bf16 arithmetic: bf16 is computed in fp32; amp_fp16 runs on its tensor cores"),
        ("T4", "amp_bf16", "has no bf16 arithmetic: amp_bf16 is computed in fp32; amp_fp16 runs"),
        ("A100", "fp8", "has no fp8 arithmetic: fp8 is computed in bf16."),
        ("GTX 1080", "tf32", "has no tf32 arithmetic: tf32 is computed in fp32."),
    ],
)
def test_a_format_that_the_device_lacks_is_a_warning(device: str, precision: str, text: str) -> None:
    answer = ec.forecast("gpt2", device=device, precision=precision, batch=1)
    assert told(answer, text)


def test_a_format_that_the_device_lacks_gains_nothing() -> None:
    plain, narrow = (ec.forecast("gpt2", device="V100", precision=p, batch=4) for p in ("fp16", "fp8"))
    assert narrow.step_seconds.mid > plain.step_seconds.mid


def test_a_network_with_everything_frozen_is_a_warning() -> None:
    frozen = ec.forecast("resnet18", device="V100", batch=8, freeze=["*"])
    assert told(frozen, "Every parameter is frozen: the step is a forward pass")
    assert frozen.step_parts is not None and frozen.step_parts.backward == frozen.step_parts.update == 0
    assert not told(ec.forecast("resnet18", device="V100", batch=8, freeze=["layer*"]), "frozen")
    assert not told(ec.forecast("resnet18", device="V100", batch=8, mode="forward"), "frozen")


def test_a_module_that_is_compiled_is_a_warning_until_the_job_says_so() -> None:
    torch = pytest.importorskip("torch")
    plain = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 10))
    compiled = torch.compile(plain)
    options: dict[str, Any] = {"device": "V100", "batch": 8, "input_shape": (3, 32, 32)}
    answer = ec.forecast(compiled, **options)
    assert COMPILED_NOTE in answer.warnings and answer.model == "Sequential"
    assert COMPILED_NOTE not in ec.forecast(compiled, compile="inductor", **options).warnings
    assert COMPILED_NOTE not in ec.forecast(plain, **options).warnings


@pytest.mark.parametrize(
    ("device", "how", "words"),
    [
        ("RTX 4070", "never", "no measurements for this GPU"),
        ("V100-PCIE-16GB", "sister", "same chip measured on another board"),
        ("RTX 3090", "steps", ""),
    ],
)
def test_a_device_that_was_never_measured_says_so(device: str, how: str, words: str) -> None:
    answer = ec.forecast("resnet18", device=device, batch=8)
    assert answer.device_measured == how
    assert bool(told(answer, "measure")) == bool(words)
    console = Console(width=200, file=StringIO())
    console.print(answer)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    lines = [line.strip() for line in text.splitlines() if line.startswith("based on")]
    assert lines == ([f"based on: learned model ({words})"] if words else [])


def test_a_model_of_large_trainers_is_taken_to_have_their_host() -> None:
    """More Python between two kernels than plain PyTorch has; a host that is named counts."""
    ask = partial(
        ec.forecast, "decoder:layers=2,hidden=256,heads=4,vocab=1000", device="A100", batch=1, input_shape=(64,)
    )
    assumed, named = ask(), ask(host_class="16us")
    assert assumed.step_seconds.mid > 1.4 * named.step_seconds.mid
    assert spread(assumed) > spread(named)
