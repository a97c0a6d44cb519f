"""Intervals by what was measured of a device, on tables made by hand."""

from collections.abc import Mapping
from dataclasses import replace

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
from epochcast.predict.cost.software_setting import SoftwareSetting
from epochcast.predict.cost.spreads import Spread, Spreads, step_kind

KNOWN, UNSEEN = Spread(0.8, 1.25), Spread(0.2, 5.0)
SPREADS = Spreads(
    {
        "known": KNOWN,
        "unseen": UNSEEN,
        "known, forward": Spread(0.6, 1.6),
        "unseen, forward": Spread(0.1, 9.0),
        "known, fp32 products": Spread(0.9, 1.1),
        "unseen, fp32 products": Spread(0.7, 1.4),
    }
)
DEVICE = find_device("RTX 3090")
KIND = "fp16-nchw-training"


@pytest.fixture(scope="module")
def training() -> Columns:
    return zoo_model("resnet18").trace(Recipe(8, "momentum", "amp_fp16")).columns


def spread(
    monkeypatch: pytest.MonkeyPatch,
    columns: Columns,
    kinds: Mapping[str, tuple[float, float] | None],
    *,
    sister_kinds: frozenset[str] = frozenset(),
    channels_last: bool = False,
) -> Spread:
    """Of a step on a device of which these kinds were measured."""

    def table(device: Device) -> Sustained:
        return Sustained({"fp32": 1.0}, 1.0, 1.0, {}, known_kinds=kinds, sister_kinds=sister_kinds)

    monkeypatch.setattr(spreads_module, "sustained", table)
    return SPREADS.of(columns, DEVICE, SoftwareSetting(channels_last=channels_last))


@pytest.mark.parametrize(
    ("precision", "mode", "setting", "kind"),
    [
        ("amp_fp16", "training", SoftwareSetting(), "fp16-nchw-training"),
        ("bf16", "forward", SoftwareSetting(), "bf16-nchw-forward"),
        ("fp32", "training", SoftwareSetting(channels_last=True), "tf32-channels_last-training"),
        ("fp32_strict", "training", SoftwareSetting(channels_last=True), "fp32-channels_last-training"),
    ],
)
def test_the_kind_of_a_step_is_its_format_layout_and_mode(
    precision: str, mode: str, setting: SoftwareSetting, kind: str
) -> None:
    columns = zoo_model("resnet18").trace(Recipe(8, "momentum", precision, mode=mode)).columns
    assert step_kind(columns, setting) == kind


def test_a_device_nobody_measured_is_unseen(monkeypatch: pytest.MonkeyPatch, training: Columns) -> None:
    assert spread(monkeypatch, training, {}) == UNSEEN


@pytest.mark.parametrize("other", ["fp16-nchw-forward", "fp16-channels_last-training", "bf16-nchw-training"])
def test_another_kind_of_step_makes_a_device_no_better_known(
    monkeypatch: pytest.MonkeyPatch, training: Columns, other: str
) -> None:
    assert spread(monkeypatch, training, {other: (0.9, 1.1)}) == UNSEEN


def test_a_kind_that_was_measured_is_known(monkeypatch: pytest.MonkeyPatch, training: Columns) -> None:
    assert spread(monkeypatch, training, {KIND: None}) == KNOWN


def test_a_kind_that_was_measured_often_has_its_own_interval(
    monkeypatch: pytest.MonkeyPatch, training: Columns
) -> None:
    assert spread(monkeypatch, training, {KIND: (0.93, 1.04), "fp16-nchw-forward": (0.5, 2)}) == Spread(0.93, 1.04)


def test_the_layout_chooses_among_its_intervals(monkeypatch: pytest.MonkeyPatch, training: Columns) -> None:
    kinds = {KIND: (0.9, 1.1), "fp16-channels_last-training": (0.7, 1.3)}
    assert spread(monkeypatch, training, kinds, channels_last=True) == Spread(0.7, 1.3)


def test_another_board_of_the_chip_lies_between_known_and_unseen(
    monkeypatch: pytest.MonkeyPatch, training: Columns
) -> None:
    """√(0.8 · 0.2) and √(1.25 · 5)."""
    assert spread(monkeypatch, training, {}, sister_kinds=frozenset({KIND})) == pytest.approx((0.4, 2.5))


def test_a_kind_that_no_board_of_the_chip_was_measured_in_is_unseen(
    monkeypatch: pytest.MonkeyPatch, training: Columns
) -> None:
    assert spread(monkeypatch, training, {}, sister_kinds=frozenset({"fp32-nchw-training"})) == UNSEEN


def test_fp32_products_have_their_own_known_and_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = product_columns((1024, 1024, 1024), "fp32")
    assert spread(monkeypatch, columns, {"fp32-nchw-forward": None}) == Spread(0.9, 1.1)
    assert spread(monkeypatch, columns, {}) == Spread(0.7, 1.4)


def test_the_ops_of_a_step_have_the_interval_of_its_kind(monkeypatch: pytest.MonkeyPatch, training: Columns) -> None:
    """Through the model: the same device, wider where this kind of step was not measured."""
    model = replace(load_learned(), spreads=SPREADS)
    widths = []
    for kinds in ({KIND: None}, {}):
        spread(monkeypatch, training, kinds)
        costs = model.costs(training, DEVICE, SoftwareSetting())
        widths.append(float(np.median(costs.high / costs.mid)))
    assert widths[0] < widths[1]


def test_unseen_is_never_narrower_in_the_shipped_model() -> None:
    cases = load_learned().spreads.cases
    for kind in ("", ", fp32 products"):
        known, unseen = cases[f"known{kind}"], cases[f"unseen{kind}"]
        assert unseen.low <= known.low < 1 < known.high <= unseen.high
