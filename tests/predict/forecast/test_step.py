from dataclasses import dataclass, replace
from math import exp, hypot, log
from time import process_time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.every import every

import epochcast as ec
from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.capture.zoo.detector_configs import configured_detector
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Columns, Trace
from epochcast.hardware.device import Device
from epochcast.predict.cost.cost_model import CostModel, Costs, Unanswered
from epochcast.predict.cost.hosts import LaunchHost, measured_launch
from epochcast.predict.cost.launch import host_seconds, launch_interval, work_seconds
from epochcast.predict.cost.software_setting import TODAY, SoftwareSetting
from epochcast.predict.forecast.exchange import gradients
from epochcast.predict.forecast.placement import Placement, place, placed
from epochcast.predict.forecast.step import StepForecast, StepParts, combined, exchange_range, step_forecast

RESNET = zoo_model("resnet18")
PLACEMENTS = {
    "one": place("V100"),
    "box": place("V100", gpus=4),
    "boxes": place("V100", gpus=8, nodes=2),
    "mirrored": place("V100", gpus=4, strategy="mirrored", link="pcie3"),
}
every_placement = every("placement", PLACEMENTS.values(), ids=list(PLACEMENTS))


def counts(trace: Trace) -> list[int]:
    return [int((trace.columns.phase == phase).sum()) for phase in range(3)]


def test_long_kernels_hide_every_launch_but_the_first(per_kernel: CostModel) -> None:
    trace = RESNET.trace(Recipe(2))
    parts = step_forecast(trace, place("V100"), per_kernel).parts
    forward, backward, update = counts(trace)
    assert parts.forward == pytest.approx(forward * 1e-4)
    assert parts.backward == pytest.approx(backward * 1e-4)
    assert parts.update == pytest.approx(update * 1e-4)
    assert parts.host == pytest.approx(host_seconds(trace, place("V100").device)[0])
    assert parts.exposed_comm == parts.exposed_input == 0


def test_short_kernels_wait_for_their_launches(per_launch: CostModel) -> None:
    trace = RESNET.trace(Recipe(2))
    step = step_forecast(trace, place("V100"), per_launch)
    launches = host_seconds(trace, place("V100").device).sum()
    assert step.seconds.mid == pytest.approx(launches + 1e-7)
    assert step.parts.host == pytest.approx(launches + 1e-7 - 1e-7 * len(trace.columns))


def test_validation_runs_the_forward_pass_with_its_launches(per_kernel: CostModel) -> None:
    trace = RESNET.trace(Recipe(2))
    first = host_seconds(trace, place("V100").device)[0]
    step = step_forecast(trace, place("V100"), per_kernel)
    assert step.forward_seconds == pytest.approx(counts(trace)[0] * 1e-4 + first)


@every_placement
def test_parts_sum_to_the_step(placement: Placement, per_flop: CostModel) -> None:
    for accumulate in (1, 3):
        trace = RESNET.trace(Recipe(8, accumulate=accumulate, optimizer="adam"))
        step = step_forecast(trace, placement, per_flop)
        assert sum(step.parts.as_dict().values()) == pytest.approx(step.seconds.mid, rel=1e-12)
        assert min(step.parts.as_dict().values()) >= 0


def test_parts_have_the_names_of_the_contract(per_kernel: CostModel) -> None:
    parts = step_forecast(RESNET.trace(Recipe(2)), place("V100"), per_kernel).parts
    assert list(parts.as_dict()) == ["forward", "backward", "update", "exposed_comm", "exposed_input", "host"]


class Given:
    """Kernel seconds as they are given."""

    name = "given"
    is_monotone = True

    def __init__(self, seconds: list[float]) -> None:
        self.seconds = np.array(seconds)

    def costs(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
        return Costs.by(self.name, self.seconds, self.seconds, self.seconds)


SMALL = zoo_model("mnist_cnn").trace(Recipe(4, optimizer="adam"))
kernel_seconds = st.lists(st.floats(1e-9, 1e-3), min_size=len(SMALL.columns), max_size=len(SMALL.columns))


@every_placement
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(seconds=kernel_seconds, more=kernel_seconds)
def test_slower_kernels_never_make_a_shorter_step(
    placement: Placement, seconds: list[float], more: list[float]
) -> None:
    fast = step_forecast(SMALL, placement, Given(seconds)).seconds.mid
    slow = step_forecast(SMALL, placement, Given(list(np.add(seconds, more)))).seconds.mid
    assert slow >= fast * (1 - 1e-12)


@settings(max_examples=20)
@given(batch=st.integers(1, 256), more=st.integers(0, 256))
def test_a_larger_batch_never_takes_less_time(per_flop: CostModel, batch: int, more: int) -> None:
    for placement in PLACEMENTS.values():
        small, large = (step_forecast(RESNET.trace(Recipe(n)), placement, per_flop) for n in (batch, batch + more))
        assert small.seconds.mid <= large.seconds.mid


def test_more_ranks_never_take_less_time_per_step(per_flop: CostModel) -> None:
    """On a switch; in a mesh two GPUs have some of their links only, and four sum faster."""
    trace = RESNET.trace(Recipe(8))
    seconds = [
        step_forecast(trace, place("A100", gpus=gpus, strategy="horovod" if gpus > 1 else None), per_flop).seconds.mid
        for gpus in (1, 2, 4, 8)
    ]
    assert seconds == sorted(seconds)


def test_the_update_waits_for_the_last_gradient(three_layers: BuiltModel, per_kernel: CostModel) -> None:
    """Everything launches far ahead, so that a step is its kernels, the first launch and what the wire shows."""
    trace = three_layers.trace(Recipe(2))
    step = step_forecast(trace, place("V100", gpus=2, strategy="mirrored", link="ethernet_10g"), per_kernel)
    alone = step_forecast(trace, place("V100"), per_kernel)
    assert gradients(trace).total_bytes == 21 * 2**20
    assert step.parts.exposed_comm > 0
    assert step.seconds.mid == pytest.approx(alone.seconds.mid + step.parts.exposed_comm)


def test_launches_of_the_update_hide_behind_the_exchange(three_layers: BuiltModel, per_launch: CostModel) -> None:
    trace = three_layers.trace(Recipe(2, optimizer="adam"))
    step = step_forecast(trace, place("V100", gpus=2, strategy="mirrored", link="ethernet_10g"), per_launch)
    alone = step_forecast(trace, place("V100"), per_launch)
    assert step.parts.host < alone.parts.host
    assert alone.seconds.mid < step.seconds.mid < alone.seconds.mid + step.parts.exposed_comm


def test_accumulation_repeats_forward_and_backward_for_one_update(per_kernel: CostModel) -> None:
    def step(accumulate: int) -> StepForecast:
        return step_forecast(RESNET.trace(Recipe(2, accumulate=accumulate)), PLACEMENTS["box"], per_kernel)

    once, thrice = step(1), step(3)
    assert thrice.parts.forward == pytest.approx(3 * once.parts.forward)
    assert thrice.parts.backward == pytest.approx(3 * once.parts.backward)
    assert thrice.parts.update == once.parts.update
    # One exchange; but ranks that compute for longer wait longer for the slowest.
    assert once.parts.exposed_comm <= thrice.parts.exposed_comm < 2 * once.parts.exposed_comm


def test_a_forward_pass_exchanges_nothing(per_kernel: CostModel) -> None:
    parts = step_forecast(RESNET.trace(Recipe(2, mode="forward")), PLACEMENTS["boxes"], per_kernel).parts
    assert parts.backward == parts.update == parts.exposed_comm == 0


def test_the_interval_is_that_of_the_kernels(per_kernel: CostModel) -> None:
    seconds = step_forecast(RESNET.trace(Recipe(2)), place("V100"), per_kernel).seconds
    assert seconds.low / seconds.mid == pytest.approx(0.8, abs=0.01)
    assert seconds.high / seconds.mid == pytest.approx(1.2, abs=0.01)


def test_who_answered_is_named(per_kernel: CostModel) -> None:
    assert step_forecast(RESNET.trace(Recipe(2)), place("V100"), per_kernel).answered_by == {"per_kernel": 1}


def test_a_device_that_launches_slower_is_never_faster(v100: Device, per_launch: CostModel) -> None:
    slow = placed(replace(v100, launch_seconds=1e-4))
    fast = placed(replace(v100, launch_seconds=1e-6))
    trace = RESNET.trace(Recipe(2))
    assert step_forecast(trace, slow, per_launch).seconds.mid > step_forecast(trace, fast, per_launch).seconds.mid


def test_parts_err_independently_by_hand() -> None:
    """Kernels e^±0.3, launches e^±0.4: e^±0.5 together; a part that only widens upwards counts half."""
    ranges = {"kernels": (exp(-0.3), exp(0.3)), "host": (exp(-0.4), exp(0.4))}
    seconds, variances = combined(1.0, ranges)
    assert (seconds.low, seconds.high) == pytest.approx((exp(-0.5), exp(0.5)))
    assert variances == pytest.approx({"kernels": 0.09, "host": 0.16})
    assert combined(1.0, {"host": (1.0, exp(0.4))})[1] == pytest.approx({"host": 0.04})


def test_what_is_not_known_of_the_exchange_widens_the_step() -> None:
    """Of 1 s of exchange 0.4 s less or 1 s more; the bubble of the pipeline is none of it."""
    mid = StepParts(2.0, 4.0, 0.0, 1.5, 0.0, 0.0, bubble=0.5)
    assert exchange_range(mid) == pytest.approx((7.1, 8.5))


def test_a_host_that_nobody_named_widens_what_goes_through_its_memory() -> None:
    """The logarithms of both doubts add as squares: 7.5 s may be 7.1 to 8.5 s, and on other hosts 6 to 12 s."""
    mid = StepParts(2.0, 4.0, 0.0, 1.5, 0.0, 0.0, bubble=0.5)
    low, high = exchange_range(mid, (6.0, 12.0))
    assert log(low / 7.5) == pytest.approx(-hypot(log(7.5 / 7.1), log(7.5 / 6)))
    assert log(high / 7.5) == pytest.approx(hypot(log(8.5 / 7.5), log(12 / 7.5)))


def test_cards_without_peer_access_are_less_certain_together() -> None:
    def width(device: str, link: str | None = None) -> float:
        seconds = ec.forecast("bert_base", device=device, batch=8, gpus=8, nodes=1, link=link).step_seconds
        return seconds.high / seconds.low

    assert width("RTX 3090") > 1.2 * width("RTX 3090", "pcie4")


def test_only_what_bounds_a_step_widens_it(v100: Device, per_kernel: CostModel, per_launch: CostModel) -> None:
    """An unknown host: nothing to a step bound by kernels, all to one that waits for launches."""
    trace = RESNET.trace(Recipe(2))

    def step(model: CostModel, host: LaunchHost | None) -> StepForecast:
        return step_forecast(trace, replace(placed(v100), host=host), model)

    host = LaunchHost("8us", measured_launch(8e-6))
    widths = [[step(m, h).seconds for h in (host, None)] for m in (per_kernel, per_launch)]
    (kernels, kernels_unknown), (launches, launches_unknown) = ([s.high / s.low for s in pair] for pair in widths)
    assert kernels_unknown == pytest.approx(kernels, rel=0.01)
    assert launches_unknown > 1.5 * launches
    assert step(per_kernel, None).variances["host"] < 0.01 * step(per_kernel, None).variances["network"]
    assert step(per_launch, None).variances["network"] < 0.01 * step(per_launch, None).variances["host"]


@every_placement
def test_the_width_is_at_least_the_exchange_s_own(placement: Placement, per_flop: CostModel) -> None:
    step = step_forecast(RESNET.trace(Recipe(8)), placement, per_flop)
    seconds, added = step.seconds, step.parts.exposed_comm
    assert 0 <= seconds.low <= seconds.mid - 0.4 * added * (1 - 1e-9)
    assert seconds.high >= seconds.mid + added * (1 - 1e-9)


def test_ten_thousand_gpus_take_no_longer_than_a_second(per_kernel: CostModel) -> None:
    trace = RESNET.trace(Recipe(64))
    begin = process_time()
    step_forecast(trace, place("H100", gpus=10_000, nodes=1250), per_kernel)
    assert process_time() - begin < 1


@dataclass(frozen=True)
class Nobody:
    """A cost model without an answer."""

    name: str = "nobody"
    is_monotone: bool = True

    def costs(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
        unknown = np.full(len(columns), np.nan)
        return Costs.by(self.name, unknown, unknown, unknown)


def test_an_op_without_an_answer_is_named_with_its_layer(three_layers: BuiltModel) -> None:
    with pytest.raises(Unanswered, match=r"nobody has no cost of op 0 \(a forward linear\) of layer 'small' on V100"):
        step_forecast(three_layers.trace(Recipe(2)), place("V100"), Nobody())


@dataclass(frozen=True)
class Asked:
    """A cost model that keeps the settings it was asked under."""

    settings: list[SoftwareSetting]
    name: str = "asked"
    is_monotone: bool = True

    def costs(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
        self.settings.append(setting)
        return Costs.by(self.name, *(np.ones(len(columns)) for _ in range(3)))


def test_the_setting_is_todays_pytorch_in_the_layout_of_the_recipe_unless_given() -> None:
    asked, old = Asked([]), SoftwareSetting(framework_age=0.1)
    for recipe in (Recipe(2), Recipe(2, channels_last=True)):
        step_forecast(RESNET.trace(recipe), place("V100"), asked)
        step_forecast(RESNET.trace(recipe), place("V100"), asked, setting=old)
    assert asked.settings == [TODAY, old, replace(TODAY, channels_last=True), old]


def test_a_detector_waits_for_its_host_at_every_image() -> None:
    """Mask R-CNN of two images in maskrcnn-benchmark: proposals (129 + 125 per image), sampling (119 + 36) and masks
    (85) are started one by one behind what came before, and 14 ms of targets are drawn for each image.
    """
    mask = configured_detector("maskrcnn_benchmark", "mask_rcnn_R_50_FPN_1x", (3, 800, 1088))
    trace = mask.trace(Recipe(2))
    awaited = trace.columns.launches[trace.awaited]
    assert awaited.tolist() == [129 + 2 * 125, 119 + 2 * 36, 85, 0]
    low, mid, high = (each.sum() for each in work_seconds(trace))
    assert mid == pytest.approx(2 * 14e-3) and low < mid < high
    drawn = configured_detector("detectron2", "mask_rcnn_R_50_FPN_1x", (3, 800, 1088)).trace(Recipe(2))
    assert not work_seconds(drawn)[1].any(), "a library draws them"


def test_reading_back_costs_what_its_launches_take(per_kernel: CostModel) -> None:
    """Long kernels hide all launches but those of the loops, which wait."""
    plain, masked = (zoo_model(name).trace(Recipe(2)) for name in ("resnet50", "maskrcnn_resnet50_fpn"))
    hosts = [step_forecast(trace, place("V100"), per_kernel).parts.host for trace in (plain, masked)]
    loops = masked.columns.launches[masked.awaited].sum() * launch_interval(masked, place("V100").device).mid
    assert hosts[0] < 1e-4 and hosts[1] > loops
