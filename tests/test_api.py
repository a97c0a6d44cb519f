import inspect
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

import epochcast as ec
from epochcast.api import find_model
from epochcast.describe.capture.zoo import zoo_model
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.catalogue import find_device
from epochcast.predict.cost.roofline import Roofline


def test_importing_the_package_is_free() -> None:
    program = "import sys, epochcast; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    assert not {"numpy", "rich", "typer", "epochcast.api", "inspect"} & set(ran.stdout.split())


@pytest.mark.parametrize(
    "before",
    [
        "",
        "import epochcast.predict.forecast.streams",
        "from epochcast.predict.forecast import forecast",
        "import epochcast.predict.forecast.forecast as forecast",
    ],
)
def test_a_verb_stays_a_verb_beside_the_package_of_its_name(before: str) -> None:
    program = f"""
{before}
import epochcast as ec
for _ in range(2):
    assert ec.forecast("mnist_cnn", device="V100", batch=2).global_batch == 2
import epochcast.predict.forecast.forecast as module
assert module.Forecast.__name__ == "Forecast"
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_verb_shows_its_options() -> None:
    assert {"model", "device", "batch", "gpus"} <= set(inspect.signature(ec.forecast).parameters)


def test_an_unknown_verb_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'epochcast' has no attribute 'prophesy'"):
        _ = ec.prophesy  # type: ignore[attr-defined]


def test_a_model_can_be_a_name_or_itself() -> None:
    by_name = ec.forecast("mnist_cnn", device="V100", batch=8)
    itself = ec.forecast(zoo_model("mnist_cnn"), device="V100", batch=8)
    assert by_name.as_dict() == itself.as_dict()
    with pytest.raises(BadInput, match="a float is not a model"):
        ec.forecast(1.5, device="V100", batch=8)


def test_another_cost_model_answers_by_its_name() -> None:
    answer = ec.forecast("mnist_cnn", device="V100", batch=8, cost_model=Roofline())
    assert answer.answered_by == {"roofline": 1.0}


def test_an_unchecked_data_sheet_is_said() -> None:
    warnings = ec.forecast("mnist_cnn", device="GTX 580", batch=8).warnings
    assert "The data sheet of GTX 580 is not checked against the vendor's." in warnings


def test_code_is_refused_where_it_is_not_allowed() -> None:
    with pytest.raises(BadInput, match="would run Python code, which is not allowed here"):
        find_model("net.py:make", allow_code=False)


@pytest.mark.parametrize("price", [-1.0, float("nan")])
def test_a_price_must_be_a_price(price: float) -> None:
    with pytest.raises(BadInput, match="dollars_per_gpu_hour must be"):
        ec.forecast("mnist_cnn", device="V100", batch=8, dollars_per_gpu_hour=price)


def test_an_unknown_device_is_offered_the_near_ones() -> None:
    with pytest.raises(UnknownName, match=r"no device called 'V1000'; near: .*V100"):
        ec.forecast("mnist_cnn", device="V1000", batch=8)


def test_a_forecast_is_short_to_print_and_long_to_show() -> None:
    answer = ec.forecast("mnist_cnn", device="V100", batch=8)
    assert repr(answer).startswith("Forecast(mnist_cnn on 1 × V100-SXM2-16GB, batch 8: step ")
    console = Console(width=100, record=True, file=StringIO())
    console.print(answer)
    assert "expected" in console.export_text()
    assert "expected" in answer._repr_html_()


def test_an_inspection_is_short_to_print_and_long_to_show() -> None:
    answer = ec.inspect("mnist_cnn")
    assert repr(answer) == "Inspection(mnist_cnn: 12 layers, 24,330 parameters, 2.8 MFLOP forward)"
    assert "totals per sample" in answer._repr_html_()


def test_more_gpus_than_a_box_has_are_told() -> None:
    def told(**options: Any) -> bool:
        found = ec.forecast("resnet18", device="V100", batch=8, **options)
        return any("assumed to be in one node" in warning for warning in found.warnings)

    assert told(gpus=32)
    assert not told(gpus=8)
    assert not told(gpus=32, nodes=4)


def test_ranks_wait_for_the_slowest_whoever_keeps_the_parameters() -> None:
    for strategy in ("parameter_server", "parameter_server:4", "ddp"):
        even, uneven = (
            ec.forecast("resnet18", device="V100", batch=64, gpus=4, strategy=strategy, uneven=spread)
            for spread in (0.0, 0.5)
        )
        assert uneven.step_seconds.mid > 1.2 * even.step_seconds.mid


def test_the_first_gpu_of_data_parallel_holds_the_loss_of_all() -> None:
    """Logits of 1,024 tokens and 50,257 words in float32: they, their log-softmax and the gradients of both."""
    two, eight = (
        ec.forecast("gpt2", device="A100", batch=4, precision="bf16", gpus=gpus, strategy="data_parallel")
        for gpus in (2, 8)
    )
    logits = 4 * 1024 * 50257 * 4
    more = eight.peak_breakdown["activations"] - two.peak_breakdown["activations"]
    assert more == pytest.approx(6 * 4 * logits, rel=0.01)


OWN = replace(find_device("A100"), name="own GPU")


def test_a_device_of_ones_own_is_forecast_with_a_loader_and_advised_on() -> None:
    assert ec.forecast("mnist_cnn", device=OWN, batch=8, loader_seconds=0.004, workers=8).dollars is None
    assert ec.advise("mnist_cnn", device=OWN, most_batch=64).fits


api: Any = ec  # a type checker would refuse what follows before it runs


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: api.forecast("mnist_cnn", "A100", batch=8), "placement must be a Placement"),
        (lambda: api.forecast("mnist_cnn", ec.place("A100"), device="V100", batch=8), "device is given twice"),
        (lambda: api.forecast("mnist_cnn", device="V100", batchs=8), "no option called 'batchs'; near: batch"),
        (lambda: api.plan("mnist_cnn", samples=9, device="V100"), "no option called 'device'; near: .*devices"),
        (
            lambda: api.plan("mnist_cnn", samples=9, batch=64, global_batch=128),
            "give batch or global_batch, not both",
        ),
        (
            lambda: api.plan("mnist_cnn", samples=9, batch=64.0),
            "batch must be a whole number, such as 1024, got 64.0",
        ),
        (lambda: api.plan("mnist_cnn", samples=9, deadline_seconds="6h"), "deadline_seconds must be a number"),
        (
            lambda: api.plan("mnist_cnn", samples=9, clouds="aws"),
            r"clouds must be a list of texts, such as \['aws'\]",
        ),
        (
            lambda: api.scaling("mnist_cnn", device="V100", gpus=["1"], batch=8),
            "gpus must be a list of whole numbers",
        ),
        (lambda: api.scaling("mnist_cnn", device="V100", gpus=[1], nodes=0, batch=8), "nodes must be at least 1"),
        (lambda: api.advise("mnist_cnn", device="V100", most_batch=0), "most_batch must be at least 1, got 0"),
        (
            lambda: api.advise("mnist_cnn", device="V100", host_memory_bytes="1GiB"),
            "host_memory_bytes must be a number",
        ),
        (lambda: api.place("V100", gpus="2"), "gpus must be a whole number, got '2'"),
        (lambda: api.place(["V100"]), "device must be a name or a data sheet"),
        (lambda: api.place("V100", dollars_per_gpu_hour=float("inf")), "dollars_per_gpu_hour must be a number"),
        (lambda: api.Placement.from_dict({"device": "V100", "gpus": None}), "gpus must be a whole number, got None"),
        (lambda: api.Placement.from_dict({"device": {"name": "x"}}), "vendor must be given"),
        (lambda: api.Placement.from_dict([]), "placement must be a JSON object"),
        (lambda: api.Forecast.from_dict([]), "forecast must be a JSON object"),
        (lambda: api.Forecast.from_dict(None), "forecast must be a JSON object, got None"),
        (lambda: api.Job.from_dict([1]), r"job must be a JSON object, got \[1\]"),
        (lambda: api.Forecast("m", "V100", 0.1), "step_seconds must be an Interval, got 0.1"),
        (lambda: api.Forecast("m", "V100", ec.Interval.exact(0.0)), "step_seconds must be positive"),
        (
            lambda: api.Forecast("m", "V100", ec.Interval.exact(1.0), warnings="abc"),
            "warnings must be a list of texts",
        ),
        (lambda: api.Job(5), "a int is not a model"),
        (lambda: api.Job("resnet50", framework_version="abc"), "framework_version must begin like 1.13"),
        (lambda: api.Job("resnet50", reference="a.py:f"), "reference says what makes a live model"),
        (lambda: api.inspect("mnist_cnn", input_shape="3x64x64"), "input_shape must be a list of whole numbers"),
        (
            lambda: api.forecast("mnist_cnn", device="V100", batch=8, session=ec.Session(), cost_model="analytic"),
            "a session has its cost model",
        ),
    ],
)
def test_a_wrong_value_is_refused_in_one_sentence_that_names_it(ask: Callable[[], object], message: str) -> None:
    with pytest.raises(ec.EpochcastError, match=message) as caught:
        ask()
    assert "\n" not in str(caught.value)
