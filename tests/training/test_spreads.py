"""The parts of an interval, fitted to errors that were drawn."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("torch")

from epochcast.predict.cost.spreads import EVIDENCE, KERNEL_PARTS, MEASURED, OTHER_VENDOR, TENSOR_CORES, UNSEEN
from training.spreads import (
    HARDWARE,
    KNOWN_RUNS,
    LEAST_VARIANCE,
    LeftOutSteps,
    cells_of,
    chips_of,
    earned,
    fitted_spreads,
    has_kin,
    is_known_elsewhere,
    known_kinds,
    outside_of,
    weighted_quantile,
)

CELLS, RUNS = 60, 40


def drawn(deviation: float = 0.2, *, known_by: str = MEASURED, shift: float = 0.0, seed: int = 0) -> LeftOutSteps:
    """Steps of one class of kernels whose errors are normal, in as many cells of the same size, by every group."""
    count = CELLS * RUNS
    logs = shift + deviation * np.random.default_rng(seed).standard_normal(count)
    shares = np.zeros((count, len(KERNEL_PARTS)))
    shares[:, KERNEL_PARTS.index("convolution, half")] = 1
    trains = np.arange(count) % 2 == 1
    mode = np.where(trains, "training", "forward")
    return LeftOutSteps(
        logs,
        shares,
        np.full(count, known_by),
        np.full(count, TENSOR_CORES),
        np.full(count, "pytorch_2"),
        np.char.add(f"{TENSOR_CORES}, ", mode),
        np.char.add("cell ", (np.arange(count) // RUNS).astype(str)),
        trains,
    )


def ends(steps: LeftOutSteps, known_by: str) -> tuple[float, float, float]:
    """The deviation, and both ends in it, of a step that trains by convolutions alone."""
    spreads = fitted_spreads(steps)
    variance = spreads.devices[f"{known_by}, {TENSOR_CORES}"] + spreads.frameworks["pytorch_2"]
    deviation = float(np.sqrt(variance + spreads.kernels["convolution, half"]))
    below, above = spreads.scales[f"{TENSOR_CORES}, training"]
    return deviation, -below * deviation, above * deviation


def test_the_parts_sum_to_the_variance_of_what_was_drawn() -> None:
    assert ends(drawn(0.2), MEASURED)[0] == pytest.approx(0.2, rel=0.1)


@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_nine_of_ten_new_steps_of_a_group_are_inside(shift: float) -> None:
    """A model that predicts too much has intervals that reach further down."""
    _, low, high = ends(drawn(0.2, shift=shift), MEASURED)
    measured = -drawn(0.2, shift=shift, seed=1).log_errors
    assert np.mean((measured >= low) & (measured <= high)) == pytest.approx(0.9, abs=0.03)


def test_every_group_has_quantiles_of_its_own() -> None:
    steps = drawn(0.2)
    steps.log_errors[~steps.trains] *= 2
    scales = fitted_spreads(steps).scales
    assert sum(scales[f"{TENSOR_CORES}, forward"]) > 1.5 * sum(scales[f"{TENSOR_CORES}, training"])


def test_less_evidence_is_never_surer() -> None:
    """Even where unseen devices were forecast better by chance."""
    steps = LeftOutSteps.joined([drawn(0.3), drawn(0.1, known_by=UNSEEN)])
    devices = fitted_spreads(steps).devices
    for hardware in HARDWARE:
        variances = [devices[f"{known_by}, {hardware}"] for known_by in EVIDENCE]
        assert variances == sorted(variances)
        assert variances[0] >= LEAST_VARIANCE


def test_a_cell_weighs_as_the_root_of_its_steps_but_one_with_few_less() -> None:
    steps = drawn()
    steps.cell[: 9 * RUNS] = "often"
    steps.cell[-1] = "once"
    sums = {cell: steps.weights[steps.cell == cell].sum() for cell in np.unique(steps.cell).tolist()}
    assert sums["often"] == pytest.approx(3 * sums["cell 10"])
    assert sums["once"] == pytest.approx(1 / KNOWN_RUNS)
    assert weighted_quantile(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 8.0]), 0.5) == 3


def test_devices_of_other_vendors_bear_their_own_errors() -> None:
    """Kernels are as uncertain as NVIDIA's, so that what is left is the devices'."""
    nvidia, other = drawn(0.2), drawn(0.4, seed=1)
    other = replace(other, hardware=np.full(len(other.cell), OTHER_VENDOR))
    devices = fitted_spreads(LeftOutSteps.joined([nvidia, other])).devices
    alone = fitted_spreads(nvidia).devices
    assert devices[f"{MEASURED}, {TENSOR_CORES}"] == pytest.approx(alone[f"{MEASURED}, {TENSOR_CORES}"])
    assert devices[f"{MEASURED}, {OTHER_VENDOR}"] > 3 * devices[f"{MEASURED}, {TENSOR_CORES}"]


def test_few_cells_stand_for_one_more_with_a_margin() -> None:
    """Ten: 90 % · 11/10 = 99 % of their steps."""
    assert outside_of(10) == pytest.approx((0.005, 0.995))
    assert outside_of(5) == (0.0, 1.0)


def test_boards_with_the_same_chip_are_one() -> None:
    first, second, other = chips_of(np.array(["V100-PCIE-32GB", "V100-SXM2-16GB", "T4"]))
    assert first == second != other


def test_a_kind_is_known_by_device_from_enough_runs() -> None:
    names = np.array(["one"] * (KNOWN_RUNS + 3) + ["other"] * KNOWN_RUNS)
    kinds = np.array(["a"] * KNOWN_RUNS + ["b"] * 3 + ["b"] * KNOWN_RUNS)
    assert known_kinds(names, kinds) == {"one": ("a",), "other": ("b",)}


def test_a_generation_on_one_chip_or_of_one_source_has_no_kin() -> None:
    names, sources = np.array(["K80", "V100-PCIE-32GB", "V100-SXM2-16GB", "T4", "TITAN RTX"]), np.array(list("aabcc"))
    assert has_kin(names).tolist() == [False, False, False, True, True]
    assert has_kin(names, sources).tolist() == [False, True, True, False, False]


def test_a_kind_is_known_elsewhere_by_other_sources_alone() -> None:
    names, kinds = np.array(["one"] * (KNOWN_RUNS + 1)), np.array(["a"] * (KNOWN_RUNS + 1))
    sources = np.array(["many"] * KNOWN_RUNS + ["single"])
    assert is_known_elsewhere(names, kinds, sources).tolist() == [False] * KNOWN_RUNS + [True]
    assert np.unique(cells_of(names, kinds)).tolist() == ["one/a"]


def test_a_device_that_others_forecast_better_keeps_no_profile() -> None:
    """By more than chance: three steps that disagree among themselves are no proof; nor are steps against operators."""
    names = np.repeat(["good", "bad", "unsure", "never left out"], 3)
    own = np.array([0.1, 0.1, 0.1, 0.3, 0.31, 0.29, 0.3, 0.1, 0.2, 0.2, 0.2, 0.2])
    others = np.array([0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.2, 0.1, np.nan, np.nan, np.nan])
    assert earned(own, others, names) == {"good", "unsure", "never left out"}
    assert earned(own, others, names, timed=["bad"]) == {"good", "bad", "unsure", "never left out"}
