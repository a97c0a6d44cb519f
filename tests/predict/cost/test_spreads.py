"""Intervals made of variances by part, on tables made by hand."""

from dataclasses import replace
from math import exp, sqrt

import numpy as np
import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Columns
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.hardware.sustained import Sustained
from epochcast.predict.cost import spreads as spreads_module
from epochcast.predict.cost.learned import load_learned
from epochcast.predict.cost.product import product_columns
from epochcast.predict.cost.software_setting import GENERATIONS, TODAY, SoftwareSetting
from epochcast.predict.cost.spreads import (
    EVIDENCE,
    KERNEL_PARTS,
    MEASURED,
    NO_TENSOR_CORES,
    OPERATORS,
    OTHER_VENDOR,
    SISTER,
    TENSOR_CORES,
    UNSEEN,
    Spread,
    Spreads,
    evidence,
    group_of,
    hardware_group,
    kernel_shares,
    step_kind,
)

DEVICE = find_device("RTX 3090")
HARDWARE = (TENSOR_CORES, NO_TENSOR_CORES, OTHER_VENDOR)
KIND = "fp16-nchw-training"
DEVICE_VARIANCES = dict(zip(EVIDENCE, (0.01, 0.02, 0.03, 0.09), strict=True))
SPREADS = Spreads(
    {f"{known_by}, {hardware}": DEVICE_VARIANCES[known_by] for known_by in EVIDENCE for hardware in HARDWARE},
    dict.fromkeys(GENERATIONS, 0.02),
    dict.fromkeys(KERNEL_PARTS, 0.04) | {"product, full": 0.06},
    {f"{hardware}, {mode}": (1.5, 2.0) for hardware in HARDWARE for mode in ("training", "forward")},
)


@pytest.fixture(scope="module")
def training() -> Columns:
    return zoo_model("resnet18").trace(Recipe(8, "momentum", "amp_fp16")).columns


def profile(
    monkeypatch: pytest.MonkeyPatch, known: tuple[str, ...] = (), sister: tuple[str, ...] = (), maths: str = ""
) -> None:
    """Every device was measured in these kinds, or its sister in those, or in these formats alone."""

    def table(device: Device) -> Sustained:
        kinds, maths_of = (frozenset(known), frozenset(sister)), frozenset(maths.split())
        return Sustained(
            {"fp32": 1.0}, 1.0, 1.0, {}, known_kinds=kinds[0], sister_kinds=kinds[1], measured_maths=maths_of
        )

    monkeypatch.setattr(spreads_module, "sustained", table)


def spread(columns: Columns, device: Device = DEVICE) -> Spread:
    return SPREADS.of(columns, device, SoftwareSetting(), np.ones(len(columns)))


@pytest.mark.parametrize(
    ("precision", "mode", "setting", "kind"),
    [
        ("amp_fp16", "training", SoftwareSetting(), "fp16-nchw-training"),
        ("bf16", "forward", SoftwareSetting(), "bf16-nchw-forward"),
        ("fp32", "training", SoftwareSetting(channels_last=True), "tf32-channels_last-training"),
        ("fp32_strict", "training", SoftwareSetting(channels_last=True), "fp32-channels_last-training"),
    ],
)
def test_the_kind_of_convolutions_is_their_format_layout_and_mode(
    precision: str, mode: str, setting: SoftwareSetting, kind: str
) -> None:
    columns = zoo_model("resnet18").trace(Recipe(8, "momentum", precision, mode=mode)).columns
    assert step_kind(columns, setting) == kind


@pytest.mark.parametrize("channels_last", [False, True])
def test_products_have_no_layout(channels_last: bool) -> None:
    """A language model on a device known by image networks alone is not known."""
    columns = zoo_model("gpt2").trace(Recipe(1, "adamw", "amp_bf16")).columns
    assert step_kind(columns, SoftwareSetting(channels_last=channels_last)) == "bf16-products-training"


def test_one_class_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product alone has share 1: √(0.09 + 0.02 + 0.06) to both sides, 1.5 and 2 times."""
    profile(monkeypatch)
    product = spread(product_columns((1024, 1024, 1024), "fp32"))
    assert product.variances == pytest.approx({"gpu": 0.09, "framework": 0.02, "network": 0.06})
    assert (product.low, product.high) == pytest.approx((exp(-1.5 * sqrt(0.17)), exp(2 * sqrt(0.17))))


def test_two_classes_err_independently(monkeypatch: pytest.MonkeyPatch, training: Columns) -> None:
    """Σ share² of a step of several classes is less than one."""
    profile(monkeypatch)
    shares = kernel_shares(training, np.ones(len(training)))
    assert shares.sum() == pytest.approx(1)
    assert spread(training).variances["network"] == pytest.approx(0.04 * float((shares**2).sum()))


def test_shares_are_by_seconds_and_format(training: Columns) -> None:
    half = training.element_bytes <= 2
    only_half = kernel_shares(training, half.astype(float))
    places = [place for place, part in enumerate(KERNEL_PARTS) if part.endswith(", half")]
    assert only_half[places].sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("known", "sister", "maths", "expected"),
    [
        ((KIND,), (), "fp16", MEASURED),
        ((), (KIND,), "fp16", SISTER),
        (("fp16-nchw-forward",), (), "fp16", OPERATORS),
        (("fp16-channels_last-training",), (), "fp16", OPERATORS),
        (("bf16-nchw-training",), ("bf16-nchw-training",), "bf16", UNSEEN),
        ((), (), "", UNSEEN),
    ],
)
def test_the_evidence_for_a_kind_of_step(
    monkeypatch: pytest.MonkeyPatch,
    training: Columns,
    known: tuple[str, ...],
    sister: tuple[str, ...],
    maths: str,
    expected: str,
) -> None:
    profile(monkeypatch, known, sister, maths)
    assert evidence(training, DEVICE, SoftwareSetting()) == expected
    assert spread(training).variances["gpu"] == DEVICE_VARIANCES[expected]


def test_the_layout_decides_whether_a_kind_is_known(monkeypatch: pytest.MonkeyPatch, training: Columns) -> None:
    profile(monkeypatch, ("fp16-channels_last-training",))
    assert evidence(training, DEVICE, SoftwareSetting(channels_last=True)) == MEASURED
    assert evidence(training, DEVICE, SoftwareSetting()) == UNSEEN


def test_hardware_and_mode_are_the_group(training: Columns) -> None:
    devices = {"RTX 3090": TENSOR_CORES, "GTX 1080 Ti": NO_TENSOR_CORES, "MI300X": OTHER_VENDOR}
    assert {name: hardware_group(find_device(name)) for name in devices} == devices
    assert group_of(training, DEVICE) == f"{TENSOR_CORES}, training"
    assert group_of(product_columns((64, 64, 64), "fp32"), DEVICE) == f"{TENSOR_CORES}, forward"


def test_every_op_of_a_step_has_the_interval_of_the_step(monkeypatch: pytest.MonkeyPatch, training: Columns) -> None:
    """Through the model: the same device, wider where this kind of step was not measured."""
    model, widths = replace(load_learned(), spreads=SPREADS), []
    for known in ((KIND,), ()):
        profile(monkeypatch, known)
        costs = model.costs(training, DEVICE, SoftwareSetting())
        spread = SPREADS.of(training, DEVICE, SoftwareSetting(), costs.mid)
        assert costs.high / costs.mid == pytest.approx(spread.high)
        assert costs.variances == pytest.approx(spread.variances)
        widths.append(spread.high)
    assert widths[0] < widths[1]


@pytest.mark.parametrize("name", ["RTX 3090", "GTX 1080 Ti", "MI300X"])
def test_less_evidence_is_never_narrower_in_the_shipped_model(
    monkeypatch: pytest.MonkeyPatch, training: Columns, name: str
) -> None:
    device, spreads = find_device(name), load_learned().spreads
    ends = []
    for known, sister, maths in (((KIND,), (), ""), ((), (KIND,), ""), ((), (), "fp16"), ((), (), "")):
        profile(monkeypatch, known, sister, maths)
        ends.append(spreads.of(training, device, TODAY, np.ones(len(training))))
    lows, highs = [end.low for end in ends], [end.high for end in ends]
    assert lows == sorted(lows, reverse=True) and highs == sorted(highs)
    assert lows[0] < 1 < highs[0]
