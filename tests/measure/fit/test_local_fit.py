from functools import cache

import numpy as np
import pytest
from tests.measure.fit.machines import HOST_SECONDS, collective_rows, machine, op_rows, op_seconds, step_rows

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.host_device import detect_host
from epochcast.measure.bench.measurements import MeasuredMachine, Measurement
from epochcast.measure.fit.local_fit import FittedDevice, fit_local
from epochcast.predict.cost.cost_contract import check_op_cost
from epochcast.predict.cost.local_file import from_text, to_text
from epochcast.predict.cost.software_setting import TODAY, SoftwareSetting

NETWORKS = ("mnist_cnn_2conv", "alexnet", "squeezenet1_1", "resnet18")


@cache
def fitted() -> FittedDevice:
    rows = [*op_rows(260), *step_rows(NETWORKS, factor=1.2), *collective_rows()]
    return fit_local(rows, date="2026-11-16")


def test_a_machine_that_keeps_a_law_is_learnt() -> None:
    answer = fitted()
    assert (answer.ops, answer.steps, answer.collectives) == (260, 8, 4)
    assert answer.op_error < 0.05
    assert answer.step_error is not None
    assert answer.step_error < 0.05


@pytest.mark.parametrize(("name", "batch"), [("mnist_cnn", 64), ("cifar10_cnn", 16), ("vgg11", 4)])
def test_a_network_nobody_benched_is_forecast(name: str, batch: int) -> None:
    trace = find_model(name).trace(Recipe(batch))
    truth = 1.2 * op_seconds(trace.columns).sum() + HOST_SECONDS * len(trace.columns)
    costs = fitted().model.costs(trace.columns, detect_host(), TODAY)
    assert costs.mid.sum() == pytest.approx(truth, rel=0.1)
    assert costs.low.sum() < truth < costs.high.sum()
    assert costs.time_fractions() == {"local": pytest.approx(1.0)}


def test_the_model_keeps_the_contract_of_cost_models() -> None:
    check_op_cost(fitted().model, find_model("mobilenet_v2").trace(Recipe(4)), detect_host())


def test_collectives_give_the_link() -> None:
    link = fitted().model.link
    assert link is not None
    assert link.latency_seconds == pytest.approx(5e-5, rel=1e-6)
    assert link.bandwidth_bytes_per_second == pytest.approx(1e9, rel=1e-6)


def test_what_is_written_is_read_back() -> None:
    model = fitted().model
    again = from_text(to_text(model), "p.json")
    assert to_text(again) == to_text(model)
    trace = find_model("mnist_cnn").trace(Recipe(8))
    ours, theirs = (m.costs(trace.columns, detect_host(), TODAY).mid for m in (model, again))
    assert ours == pytest.approx(theirs, rel=1e-3)


def test_another_device_gets_no_answer() -> None:
    costs = fitted().model.costs(find_model("mnist_cnn").trace(Recipe(8)).columns, find_device("V100"), TODAY)
    assert np.isnan(costs.mid).all()


def test_a_framework_nobody_measured_is_answered_as_pytorch() -> None:
    columns = find_model("mnist_cnn").trace(Recipe(8)).columns
    model = fitted().model
    one, other = (model.costs(columns, detect_host(), SoftwareSetting(framework=f)) for f in ("pytorch", "tensorflow"))
    assert np.array_equal(one.mid, other.mid)


def test_a_disturbed_op_does_not_carry_its_neighbours_away() -> None:
    rows = op_rows(120)
    disturbed = [
        Measurement("op", r.key, r.machine, r.question, 20 * (r.seconds or 0), 20 * (r.seconds or 0), 0.0, 30)
        if place % 25 == 7
        else r
        for place, r in enumerate(rows)
    ]
    trace = find_model("resnet18").trace(Recipe(2))
    clean, dirty = (
        fit_local(r, date="").model.costs(trace.columns, detect_host(), TODAY).mid.sum() for r in (rows, disturbed)
    )
    assert dirty == pytest.approx(clean, rel=0.25)


def test_too_few_ops_are_refused() -> None:
    with pytest.raises(BadInput, match="3 measured ops are too few for a profile, which needs at least 10"):
        fit_local(op_rows(3), date="")


def test_no_ops_at_all_are_refused() -> None:
    with pytest.raises(BadInput, match="no measured op in these files; measure some with: epochcast bench ops"):
        fit_local(collective_rows(), date="")


def test_rows_of_another_machine_are_named_not_used() -> None:
    other = MeasuredMachine("other", {**machine().facts, "cpu": "another"})
    strange = [Measurement("op", r.key, other, r.question, 1.0, 1.0, 0.0, 1) for r in op_rows(5)]
    answer = fit_local([*op_rows(40), *strange], date="")
    assert answer.ops == 40
    assert answer.unused == ("5 rows of other machines",)


def test_measurements_of_another_processor_are_fitted_where_they_were_made() -> None:
    other = MeasuredMachine("other", {**machine().facts, "cpu": "another"})
    strange = [Measurement("op", r.key, other, r.question, 1.0, 1.0, 0.0, 1) for r in op_rows(12)]
    with pytest.raises(
        BadInput, match=r"the measurements are of another, this is .*; fit them where they were measured"
    ):
        fit_local(strange, date="")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"format"', '"farmat"'), "p.json: no key called 'farmat'"),
        (("profile 1", "profile 9"), "p.json: format must be 'epochcast local profile 1'"),
        (('"op_class": "conv"', '"op_class": "cnov"'), "p.json: no op class called 'cnov'"),
        (('"seconds_per_flop"', '"seconds_per_flap"'), "p.json: groups: no key called 'seconds_per_flap'"),
        (("{", "["), "p.json is not a profile of `epochcast fit`"),
        (('"launch_seconds": ', '"launch_seconds": NaN, "x": '), "p.json: groups: no key called 'x'"),
        (('"launch_seconds": ', '"launch_seconds": 1e300'), "p.json"),
        (('"noise": ', '"noise": 1e300'), "p.json"),
        (('"ops": [\n    [', '"ops": [\n    [1' + "0" * 400), "p.json: values of a group are logarithms"),
    ],
)
def test_a_file_that_is_no_profile_is_refused(change: tuple[str, str], message: str) -> None:
    with pytest.raises(BadInput) as caught:
        from_text(to_text(fitted().model).replace(*change, 1), "p.json")
    assert message in str(caught.value)
