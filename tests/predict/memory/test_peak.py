from dataclasses import replace

import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.catalogue import devices, find_device
from epochcast.predict.memory.device_context import context_bytes, room_bytes, usable_bytes
from epochcast.predict.memory.largest_batch import largest_batch
from epochcast.predict.memory.lifetimes import Role
from epochcast.predict.memory.memory_kinds import MEMORY_KINDS
from epochcast.predict.memory.memory_spreads import LEAST
from epochcast.predict.memory.peak import peak_memory, step_on
from epochcast.predict.memory.replay import OutOfMemory
from epochcast.predict.memory.sharding import RankShares, zero_shares
from epochcast.predict.memory.workspaces import workspace_bytes

RESNET = zoo_model("resnet18")
V100 = find_device("V100")


def test_the_breakdown_sums_to_the_middle() -> None:
    found = peak_memory(RESNET.trace(Recipe(32, optimizer="adam")), V100)
    assert sum(found.breakdown.values()) == found.bytes.mid == found.reserved_bytes + found.context_bytes
    assert found.reserved_bytes >= found.allocated_bytes >= found.timeline.total_bytes.max()
    assert found.breakdown["parameters"] == 4 * 11_689_512


def test_more_samples_never_need_less() -> None:
    peaks = [peak_memory(RESNET.trace(Recipe(n)), V100).allocated_bytes for n in range(1, 200, 20)]
    assert peaks == sorted(peaks)


def test_without_a_device_there_is_no_context_and_no_verdict() -> None:
    found = peak_memory(RESNET.trace(Recipe(8)))
    assert (found.context_bytes, found.fits) == (0, None)


def test_a_processor_has_no_cache_and_no_context() -> None:
    cpu = replace(V100, kind="cpu")
    found = peak_memory(RESNET.trace(Recipe(8)), cpu)
    assert found.bytes.mid == found.timeline.total_bytes.max()


def test_the_largest_batch_is_the_largest_that_fits() -> None:
    trace = RESNET.trace(Recipe(1, optimizer="momentum"))
    most = largest_batch(trace, V100)
    assert 0 < most.safe <= most.expected <= most.limit
    assert peak_memory(trace.rebatch(most.expected), V100).fits
    assert not peak_memory(trace.rebatch(2 * most.limit), V100).fits


@pytest.mark.parametrize(
    ("model", "device"), [("vgg16", "K80"), ("vgg16", "T4"), ("resnet50", "V100"), ("gpt2", "A100")]
)
def test_what_is_hopeless_does_not_fit(model: str, device: str) -> None:
    """Around the least that is ever alive, workspaces left out: a byte less than that and no replay succeeds."""
    step = step_on(zoo_model(model).trace(Recipe(8)), find_device(device))
    live = step.live_bytes(8)
    least = int((live.sum(axis=0) - live[Role.WORKSPACE]).max())
    assert step.is_hopeless(8, least - 1)
    assert not step.is_hopeless(8, least)
    with pytest.raises(OutOfMemory):
        step.usage(8, least - 1)
    assert not step.fits(8, least - 1)
    assert step.fits(8, step.usage(8).reserved_bytes)


def test_no_batch_fits_where_the_weights_do_not() -> None:
    small = replace(V100, memory_bytes=2**31)
    most = largest_batch(zoo_model("vgg16").trace(Recipe(1, optimizer="adam")), small)
    assert (most.safe, most.expected, most.limit) == (0, 0, 0)


# 64 images of 64 x 56 x 56, 3x3, 64 → 64: 36/16 of both maps, 36/9 of the weights.
def test_a_winograd_workspace_by_hand() -> None:
    op = next(op for op in RESNET.trace(Recipe(64)).ops if op.name.startswith("layer1.0.conv1"))
    maps, weights = 2 * 64 * 64 * 56 * 56 * 4, 64 * 64 * 9 * 4
    assert workspace_bytes(op, "turing") == 9 * maps // 4 + 4 * weights
    assert workspace_bytes(op, "ampere") == 0


def test_workspaces_depend_on_the_generation() -> None:
    trace = zoo_model("vgg16").trace(Recipe(32))
    old, new = (peak_memory(trace, find_device(name)).reserved_bytes for name in ("K80", "RTX 3090"))
    assert old > new + 2**30


# The widest layers of VGG-13: 36/16 of two maps of 64 x 224 x 224 floats are 58 MB a sample.
@pytest.mark.parametrize(("batch", "is_asked_for"), [(32, True), (64, False)])
def test_turing_asks_for_no_workspace_above_2_gib(batch: int, is_asked_for: bool) -> None:
    step = step_on(zoo_model("vgg13").trace(Recipe(batch)), find_device("T4"))
    largest = step.size_bytes(batch)[step.lives.roles == Role.WORKSPACE].max()
    assert (largest > 9 * 2 * 64 * 224 * 224 * batch) == is_asked_for
    assert largest <= 2**31


def test_zero_shards_state_then_gradients_then_parameters() -> None:
    trace = RESNET.trace(Recipe(8, optimizer="adam"))
    peaks = [peak_memory(trace, V100, shares=zero_shares(stage, 8, trace)).allocated_bytes for stage in (1, 2, 3)]
    assert peak_memory(trace, V100).allocated_bytes > peaks[0] >= peaks[1] > peaks[2]
    with pytest.raises(BadInput, match="stages 1, 2 and 3"):
        zero_shares(4, 8, trace)


def test_a_rank_updates_what_it_has_the_state_of() -> None:
    """Adam's temporaries are as large as the parameters that are updated: a 64th of them on each of 64 ranks."""
    trace = zoo_model("gpt2").trace(Recipe(1, optimizer="adam"))
    whole, sharded = (step_on(trace, None, shares=shares) for shares in (RankShares(), zero_shares(3, 64, trace)))
    made = whole.lives.of_update
    assert made.any()
    assert whole.size_bytes(1)[made].sum() == sum(p.tensor.bytes for p in trace.parameters)
    assert sharded.size_bytes(1)[sharded.lives.of_update].sum() == pytest.approx(
        whole.size_bytes(1)[made].sum() / 64, rel=1e-3
    )


def test_buckets_hold_the_gradients_once_more() -> None:
    found = peak_memory(RESNET.trace(Recipe(8)), V100, shares=RankShares(bucket_fraction=1.0))
    assert found.breakdown["buckets"] == 4 * 11_689_512


def test_a_context_has_the_kernels_that_the_framework_loads() -> None:
    """All of them before PyTorch 1.13, those that a step uses since."""
    a100 = find_device("A100")
    old, new = (context_bytes(a100, version) for version in ((1, 12), (1, 13)))
    assert new == context_bytes(a100, (2, 5)) == context_bytes(a100) < old / 2
    assert context_bytes(a100, (0, 4)) == old
    trace = RESNET.trace(Recipe(8))
    peaks = [peak_memory(trace, a100, framework_version=version) for version in ((1, 12), None)]
    assert peaks[0].bytes.mid - peaks[1].bytes.mid == old - new


def test_each_number_has_an_interval_and_includes_the_one_before() -> None:
    found = peak_memory(RESNET.trace(Recipe(32)), V100)
    numbers = [found.interval_of(number) for number in MEMORY_KINDS]
    assert [number.mid for number in numbers] == [found.allocated_bytes, found.reserved_bytes, found.bytes.mid]
    assert all(number.low < number.mid < number.high for number in numbers)


def test_parameters_gradients_and_state_are_the_least_of_each_number_on_one_gpu() -> None:
    """Three and a half times ResNet-18's parameters are most of a step at a batch of one."""
    found = peak_memory(RESNET.trace(Recipe(1, optimizer="adamw")), V100)
    standing = 4 * 4 * 11_689_512
    assert all(found.interval_of(number).low >= standing for number in MEMORY_KINDS)


def test_a_step_does_not_fit_where_what_is_certain_does_not() -> None:
    trace = RESNET.trace(Recipe(1, optimizer="adamw"))
    small = replace(V100, memory_bytes=4 * 4 * 11_689_512 + context_bytes(V100))
    assert peak_memory(trace, small).fits_probability == LEAST


def test_every_device_leaves_room_for_tensors() -> None:
    for device in devices():
        assert 0 <= room_bytes(device) < usable_bytes(device) + 1 <= device.memory_bytes + 1
        assert context_bytes(device) < 3 * 2**30


def test_an_unknown_allocator_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="no allocator called 'buddy'; known: bfc, caching, expandable"):
        peak_memory(RESNET.trace(Recipe(1)), V100, allocator="buddy")
