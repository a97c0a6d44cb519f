from dataclasses import replace

import numpy as np
import pytest
from tests.every import every

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Columns
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.hardware.sustained import MOST_BANDWIDTH_LOSS, MOST_PEAK_LOSS
from epochcast.predict.cost.cost_model import Array, Costs
from epochcast.predict.cost.cost_models import find_cost_model
from epochcast.predict.cost.laws import WINOGRAD, bounds_by_single, lawful, least_seconds
from epochcast.predict.cost.learned import load_learned
from epochcast.predict.cost.product import product_columns
from epochcast.predict.cost.software_setting import TODAY, SoftwareSetting

V100, T4 = find_device("V100"), find_device("T4")
LARGE = (8192, 8192, 8192)


class Odd:
    """Half precision takes a second, everything else a millisecond."""

    name, is_monotone = "odd", False

    def costs(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
        mid = np.where(columns.element_bytes < 4, 1.0, 1e-3)
        return Costs.by(self.name, 0.5 * mid, mid, 2 * mid)

    def seconds(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Array:
        return self.costs(columns, device, setting).mid


def test_a_product_takes_its_flops_at_the_peak_of_the_format_that_runs() -> None:
    flops = 2.0 * 8192**3
    assert least_seconds(product_columns(LARGE, "fp16"), V100) == pytest.approx(flops / V100.peak("fp16"))
    assert least_seconds(product_columns(LARGE, "bf16"), T4) == pytest.approx(flops / T4.peak("fp32")), "T4 has no bf16"


def test_only_convolutions_with_a_window_and_without_a_stride_may_be_faster() -> None:
    columns = zoo_model("resnet50").trace(Recipe(8)).columns
    share = least_seconds(columns, V100) * V100.peak("fp32") / np.maximum(columns.flops, 1)
    shares = {round(float(value), 6) for value in share[columns.is_matrix]}
    assert shares == {1.0, round(1 / WINOGRAD, 6)}
    assert not share[~columns.is_matrix].any()
    assert share[columns.is_matrix & (columns.kernel == 1)] == pytest.approx(1)


def test_what_is_too_fast_is_moved_to_the_peak_with_its_interval() -> None:
    columns = product_columns((16384, 16384, 16384), "fp32")
    fast = Odd().costs(columns, T4, TODAY)
    moved = lawful(fast, columns, T4, TODAY, Odd())
    assert moved.mid == pytest.approx(least_seconds(columns, T4))
    assert moved.low / moved.mid == pytest.approx(0.5)
    assert moved.high / moved.mid == pytest.approx(2.0)


def test_half_precision_is_no_slower_than_single_where_tensor_cores_multiply_it() -> None:
    columns = product_columns((1024, 1024, 1024), "fp16")
    odd = Odd().costs(columns, V100, TODAY)
    assert lawful(odd, columns, V100, TODAY, Odd()).mid == pytest.approx(1e-3)
    bare = replace(V100, tensor_cores=False)
    assert lawful(Odd().costs(columns, bare, TODAY), columns, bare, TODAY, Odd()).mid == pytest.approx(1.0)
    least, most = bounds_by_single(product_columns((1024, 1024, 1024), "bf16"), V100, TODAY, Odd())
    assert least == pytest.approx(1e-3), "V100 has no bf16: it computes in float32"
    assert np.isinf(most).all()


def test_siblings_are_ordered_by_no_more_than_a_data_sheet_gains() -> None:
    laws = load_learned().laws
    assert laws.compute_losses.max() <= MOST_PEAK_LOSS
    assert laws.bandwidth_losses.max() <= MOST_BANDWIDTH_LOSS


@every("device", ["RTX 2080 Ti", "TITAN RTX", "Quadro P1000", "K40", "GTX 1660"])
@every("precision", ["fp32", "fp16"])
def test_language_models_stay_below_the_peak(device: str, precision: str) -> None:
    card = find_device(device)
    trace = zoo_model("gpt2").trace(Recipe(16, precision=precision))
    seconds = find_cost_model().costs(trace.columns, card, TODAY).mid.sum()
    assert trace.flops["matrix"] / seconds <= card.peak(precision)


@pytest.mark.parametrize(("device", "precision"), [("V100", "amp_bf16"), ("T4", "bf16"), ("K80", "amp_fp16")])
def test_a_half_that_a_device_has_not_makes_no_product_quicker(device: str, precision: str) -> None:
    half, single = (
        find_cost_model().costs(trace.columns, find_device(device), TODAY).mid[trace.columns.is_matrix].sum()
        for trace in (zoo_model("gpt2").trace(Recipe(8, precision=each)) for each in (precision, "fp32"))
    )
    assert half >= 0.999 * single
