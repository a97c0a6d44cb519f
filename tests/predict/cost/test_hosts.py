from dataclasses import replace
from statistics import median

import pytest

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.catalogue import find_device
from epochcast.predict.cost.hosts import (
    _measured,
    find_host,
    hooks,
    host_classes,
    measured_host,
    parse_hooks,
    unknown_host,
)
from epochcast.predict.cost.launch import (
    COMPILED_LAUNCH_SECONDS,
    assumed_host,
    launch_interval,
    launch_seconds,
    started_kernels,
    work_seconds,
)

V100 = find_device("V100")


def test_a_class_is_the_median_of_its_systems_and_as_wide_as_they_differ() -> None:
    cloud = host_classes()["cloud"].launch_seconds
    modal = [s for (source, system), s in _measured().items() if "modal" in system.casefold()]
    assert cloud.low <= median(modal) <= cloud.high
    assert cloud.low < cloud.mid < cloud.high
    middles = [host_classes()[name].launch_seconds.mid for name in ("workstation", "cloud", "old_server")]
    assert middles == sorted(middles)


def test_a_figure_is_a_host_too() -> None:
    assert find_host("12us").launch_seconds.mid == pytest.approx(12e-6)
    assert find_host(" Cloud ") is host_classes()["cloud"]
    assert find_host(find_host("12us").text) == find_host("12us")
    assert find_host("cloud").text == "cloud"


@pytest.mark.parametrize("text", ["-3us", "0us", "2 s"])
def test_a_launch_takes_some_time_and_not_long(text: str) -> None:
    with pytest.raises(BadInput, match="a launch takes above 0 and at most 100 ms"):
        find_host(text)


def test_an_unknown_class_is_answered_with_the_known_ones() -> None:
    known = "cloud, diffusion_trainer, diffusion_transformer, large_trainer, old_server, workstation"
    with pytest.raises(UnknownName, match=f"no host class called 'cluod'; known: {known}"):
        find_host("cluod")
    with pytest.raises(UnknownName, match="no framework with hooks called 'adaptld'; known: adaptdl"):
        parse_hooks("adaptld")


def test_hooks_are_seconds_or_a_framework() -> None:
    assert parse_hooks("0.5ms") == pytest.approx(5e-4)
    assert parse_hooks("AdaptDL") == hooks()["adaptdl"]
    assert parse_hooks("-1ms") < 0  # refused by the option, which knows its limits


def test_a_system_of_a_public_table_has_its_own_launches() -> None:
    host = measured_host("kernelbench_level3", "A100_modal")
    assert host is not None and host.launch_seconds.mid == pytest.approx(39e-6)
    assert measured_host("kernelbench_level3", "elsewhere") is None


def test_an_unknown_host_is_as_uncertain_as_stacks_differ() -> None:
    trace = zoo_model("resnet18").trace(Recipe(2))
    usual = launch_interval(trace, V100)
    assert usual.mid == launch_seconds(V100)
    assert usual.high / usual.low > 2
    known = launch_interval(trace, V100, find_host("12us"))
    assert known.mid == pytest.approx(12e-6)
    assert known.high / known.low < usual.high / usual.low


def test_an_unknown_host_is_the_median_of_the_measured_ones_that_run_no_trainer() -> None:
    hosts = host_classes()
    ordinary = [s for (source, _), s in _measured().items() if source.startswith(("kernelbench", "torchvision"))]
    assert unknown_host().launch_seconds.mid == median(ordinary)
    assert hosts["workstation"].launch_seconds.mid < unknown_host().launch_seconds.mid
    assert unknown_host().launch_seconds.mid < hosts["diffusion_trainer"].launch_seconds.mid


def test_pytorch_1_starts_two_more_kernels_for_every_trained_tensor() -> None:
    trace, old = (
        zoo_model("resnet18").trace(Recipe(2, mode="forward_backward", update_style=style))
        for style in ("foreach", "loop")
    )
    tensors = sum(p.trainable for p in trace.parameters)  # 20 convolutions, 20 norms of two, a product and its bias
    assert tensors == 20 + 2 * 20 + 2
    launches = trace.columns.launches
    assert started_kernels(trace).sum() == launches.sum()
    assert started_kernels(old).sum() == launches.sum() + 2 * tensors
    assert started_kernels(old)[0] == launches[0] + tensors  # zeroed first: this step has no update
    forward = zoo_model("resnet18").trace(Recipe(2, mode="forward", update_style="loop"))
    assert started_kernels(forward).sum() == forward.columns.launches.sum()


def test_gradients_of_four_passes_are_summed_three_times() -> None:
    trace = zoo_model("resnet18").trace(Recipe(2, accumulate=4))
    more = started_kernels(trace).sum() - trace.columns.launches.sum()
    assert 4 * more == pytest.approx(3 * 62)


def test_inductor_starts_kernels_faster_than_eager_mode_and_slower_than_a_graph() -> None:
    eager, inductor, graph = (
        launch_interval(zoo_model("resnet18").trace(Recipe(2, compile=compiler)), V100)
        for compiler in ("none", "inductor", "reduce-overhead")
    )
    assert graph.mid < inductor.mid < eager.mid
    assert inductor.low < eager.low and inductor.high == eager.high


def test_an_assumed_class_is_as_uncertain_as_an_unknown_host() -> None:
    trace = zoo_model("resnet18").trace(Recipe(2))
    told, assumed = find_host("large_trainer").launch_seconds, assumed_host("large_trainer").launch_seconds
    unknown = launch_interval(trace, V100)
    assert assumed.mid == told.mid
    assert assumed.low <= unknown.low < told.low and assumed.high >= unknown.high


@pytest.mark.parametrize("compiler", COMPILED_LAUNCH_SECONDS)
def test_a_compiler_that_launches_without_python_hardly_minds_the_host(compiler: str) -> None:
    trace = zoo_model("resnet18").trace(Recipe(2, compile=compiler))
    slow, fast = (launch_interval(trace, V100, find_host(text)) for text in ("40us", "1us"))
    assert slow.mid == COMPILED_LAUNCH_SECONDS[compiler]
    assert fast.mid == min(1e-6, COMPILED_LAUNCH_SECONDS[compiler])
    eager = launch_interval(trace.under(trace.recipe.eager()), V100, find_host("40us"))
    assert slow.high <= eager.high and slow.low <= eager.low


def test_the_host_draws_masks_in_eager_mode_and_not_in_a_vendors_graph() -> None:
    recipe = Recipe(2, "momentum", "amp_fp16")
    model = find_model("maskrcnn_benchmark:mask_rcnn_R_50_FPN_1x")
    assert work_seconds(model.trace(recipe))[1].sum() > 0
    assert work_seconds(model.trace(replace(recipe, compile="vendor")))[1].sum() == 0
