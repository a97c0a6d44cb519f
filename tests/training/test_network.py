"""The efficiency net on made-up measurements: small, seeded, without the measured data."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from epochcast.describe.capture.zoo import zoo_model  # noqa: E402
from epochcast.describe.graph.math_modes import OP_MATHS  # noqa: E402
from epochcast.describe.graph.recipe import Recipe  # noqa: E402
from epochcast.hardware.catalogue import find_device  # noqa: E402
from epochcast.hardware.sustained import sustained  # noqa: E402
from epochcast.predict.cost.learned import load_learned, read_learned  # noqa: E402
from epochcast.predict.cost.op_bounds import GROUPS  # noqa: E402
from epochcast.predict.cost.software_setting import SoftwareSetting  # noqa: E402
from training.examples import Example, inference  # noqa: E402
from training.left_out import log_steps  # noqa: E402
from training.material import Material  # noqa: E402
from training.network import FIRST_GROUP, SUSTAINED, EfficiencyNet, Names, NetRow, OpRows, net_row, train  # noqa: E402
from training.quantiles import fit_quantiles  # noqa: E402
from training.train import exported  # noqa: E402

MODELS = ("resnet18", "resnet20", "squeezenet", "mobilenet_v2")


def example(model: str, batch: int, slowdown: float) -> Example:
    """A step that takes `slowdown` times its roofline."""
    recipe = Recipe(batch, "momentum")
    device = find_device("V100")
    columns = zoo_model(model).trace(recipe).columns
    from epochcast.predict.cost.roofline import bounds

    bound = bounds(columns, device)
    seconds = float(np.maximum(bound.compute, bound.memory).sum()) * slowdown
    return Example(columns, device, SoftwareSetting(), seconds, "made", model, model, recipe)


@pytest.fixture(scope="module")
def material() -> Material:
    names = Names()
    examples = [example(model, batch, 2.0) for model in MODELS for batch in (64, 128, 256)]
    nets = [net_row(e, names) for e in examples]
    first: NetRow = nets[0]
    kernels = first.kernels
    ops = OpRows(
        kernels,
        torch.zeros(len(kernels), dtype=torch.int64),
        torch.zeros(len(kernels), dtype=torch.int64),
        torch.logaddexp(kernels.log_compute, kernels.log_memory) + float(np.log(2.0)),
        np.full(len(kernels), 1 / len(kernels)),
        np.ones(len(kernels), dtype=np.bool_),
    )
    devices = np.array([examples[0].device.name] * len(kernels))
    return Material(ops, np.array([1e-6]), devices, [], [], examples, nets, names, {})


def fresh(material: Material, seed: int = 0) -> EfficiencyNet:
    inputs = material.ops.kernels.inputs.shape[1]
    return EfficiencyNet(inputs, 16, material.names, material.floors, seed)


def test_training_learns_a_constant_slowdown(material: Material) -> None:
    model = fresh(material)
    train(model, material.ops, material.nets, steps=150, seed=0, op_batch=64, net_batch=4)
    error = log_steps([model], material.nets) - np.array([n.log_seconds for n in material.nets])
    assert np.abs(np.exp(error) - 1).mean() < 0.1


def test_the_same_seed_gives_the_same_net(material: Material) -> None:
    answers = []
    for _ in range(2):
        model = fresh(material, seed=3)
        train(model, material.ops, material.nets, steps=5, seed=3, op_batch=16, net_batch=2)
        answers.append(log_steps([model], material.nets))
    assert np.array_equal(answers[0], answers[1])


def test_the_text_answers_as_the_trained_net_did(material: Material) -> None:
    model = fresh(material)
    quantiles, spreads = fit_quantiles([model], material.ops), load_learned().spreads
    read = read_learned(exported([model], quantiles, spreads))
    assert read.spreads == spreads
    row, e = material.nets[0], material.examples[0]
    kept = sustained(e.device)
    with torch.no_grad():
        values = {"vector": kept.vector_fraction, "bandwidth": kept.bandwidth_fraction}
        values |= {**kept.group_factors, **kept.generation_factors}
        values |= {math: kept.math_fraction(math) for math in OP_MATHS}
        model.sustain(0, torch.tensor([float(np.log(values.get(name, 1.0))) for name in SUSTAINED]))
        kernels = torch.exp(model.log_kernel(row.kernels, torch.zeros(len(row.kernels), dtype=torch.int64))).numpy()
    total = float((kernels * row.times.numpy()).sum())
    assert read.costs(e.columns, e.device, e.setting).mid.sum() == pytest.approx(total, rel=2e-2)


def test_nine_of_ten_ops_lie_between_the_quantiles(material: Material) -> None:
    """Rows scattered by hand around what an untrained net says: e^±0.1 for convolutions, e^±0.5 for all others."""
    model, ops = fresh(material), material.ops
    rows = torch.arange(len(ops.log_seconds)).repeat(40)
    scattered = OpRows(
        ops.kernels.at(rows),
        ops.device[rows],
        ops.timing[rows],
        ops.log_seconds[rows],
        ops.weight[rows.numpy()],
        ops.is_large[rows.numpy()],
    )
    noise = torch.randn(len(rows), generator=torch.Generator().manual_seed(0))
    conv = FIRST_GROUP + GROUPS.index("conv")
    spread = torch.where(scattered.kernels.group == conv, 0.1, 0.5)
    with torch.no_grad():
        model.floor.fill_(-30.0)
        log_seconds = model.log_row(scattered, torch.arange(len(rows))) + spread * noise
    found = fit_quantiles([model], replace(scattered, log_seconds=log_seconds))
    below, above = found(scattered.kernels.inputs.numpy().astype(float)).T
    errors = (spread * noise).numpy()
    for mine in (spread.numpy() < 0.2, spread.numpy() > 0.2):
        inside = (errors[mine] >= -below[mine]) & (errors[mine] <= above[mine])
        assert np.mean(inside) == pytest.approx(0.9, abs=0.04)


def test_inference_is_the_forward_part_without_the_loss() -> None:
    trace = zoo_model("resnet18").trace(Recipe(8, "momentum"))
    forward = zoo_model("resnet18").trace(Recipe(8, mode="forward"))
    part = inference(trace.columns)
    assert part.flops[part.is_matrix].sum() == forward.columns.flops[forward.columns.is_matrix].sum()


def test_a_device_sustains_what_its_generation_does_and_what_it_alone_does() -> None:
    names = Names()
    nets = [net_row(replace(example("resnet18", 8, 2.0), device=find_device(n)), names) for n in ("T4", "RTX 2080 Ti")]
    model = EfficiencyNet(nets[0].kernels.inputs.shape[1], 16, names, np.array([1e-6]), 0)
    assert len(model.of_generation) == 1, "both are of Turing"
    with torch.no_grad():
        model.of_generation.fill_(0.1)
        model.of_device[0] = 0.2
    assert model.sustained[:, 0].detach().numpy() == pytest.approx([0.3, 0.1])
    model.sustain(1, torch.full((len(SUSTAINED),), 0.5))
    assert model.sustained[:, 0].detach().numpy() == pytest.approx([0.3, 0.5])


def test_layout_is_part_of_the_question() -> None:
    e = example("resnet18", 8, 2.0)
    last = replace(e, setting=SoftwareSetting(channels_last=True))
    rows = [net_row(x, Names()).kernels.inputs for x in (e, last)]
    assert not torch.equal(rows[0], rows[1])


def test_whoever_measured_may_be_slower_without_blame_for_the_device(material: Material) -> None:
    """The factor of a source is in what is trained on, not in a forecast."""
    model = fresh(material)
    with torch.no_grad():
        model.source.fill_(float(np.log(1.5)))
        plain, measured = model.log_steps(material.nets), model.log_steps(material.nets, by_source=True)
    assert torch.exp(measured - plain).numpy() == pytest.approx(1.5)


def test_a_source_that_is_the_measure_has_no_factor() -> None:
    names = Names()
    nets = [net_row(replace(example("resnet18", 8, 2.0), source=source), names) for source in ("timm", "made")]
    model = EfficiencyNet(nets[0].kernels.inputs.shape[1], 16, names, np.array([1e-6]), 0)
    with torch.no_grad():
        model.source.fill_(0.3)
        factors = model.log_steps(nets, by_source=True) - model.log_steps(nets)
    assert factors.numpy() == pytest.approx([0.0, 0.3], abs=1e-5)
