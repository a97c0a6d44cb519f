import gzip
import json

import numpy as np
import pytest

from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_device
from epochcast.predict.cost.layer_terms import ARTEFACT_TERMS, FEATURES, TERMS, features, terms
from epochcast.predict.cost.layers_model import FILE, LayersModel, from_bytes, layers_model
from epochcast.predict.cost.single_layer import LayerRows

P100, V100, T4 = find_device("P100-PCIe"), find_device("V100"), find_device("T4")


def random_layers(count: int, seed: int = 0) -> LayerRows:
    rng = np.random.default_rng(seed)
    size = rng.integers(8, 256, count).astype(float)
    optimizer = rng.choice(["none", "sgd", "adam"], count)
    return LayerRows(
        "conv2d",
        rng.integers(1, 65, count).astype(float),
        size,
        rng.integers(1, 8, count).astype(float),
        rng.integers(1, 5, count).astype(float),
        rng.random(count) < 0.5,
        rng.integers(1, 64, count).astype(float),
        rng.integers(1, 64, count).astype(float),
        rng.random(count) < 0.5,
        rng.choice(["none", "relu", "tanh"], count),
        optimizer,
        optimizer != "none",
    )


@pytest.fixture(scope="module")
def model() -> LayersModel:
    return layers_model()


def test_terms_of_a_forward_run_have_no_artefact() -> None:
    rows = random_layers(40)
    artefacts = terms(rows, P100)[:, [TERMS.index(name) for name in ARTEFACT_TERMS]]
    assert np.array_equal(artefacts.sum(axis=1) > 0, rows.trains)


def test_every_feature_has_a_finite_number() -> None:
    told = features(random_layers(40), P100, 3, "pascal", np.full(40, 1e-3))
    assert told.shape == (40, len(FEATURES))
    assert np.isfinite(told).all()


def test_coefficients_are_no_better_than_physics_allows(model: LayersModel) -> None:
    """An update of activations cannot beat the memory bandwidth by more than the count of its bytes is off."""
    place = TERMS.index("update_input")
    assert all(s.coefficients[place] > 0.9 for s in model.setups if s.kind == "conv2d" and s.rows > 1000)


def test_answers_are_ordered_and_positive(model: LayersModel) -> None:
    answer = model.answer(random_layers(60), P100, "tensorflow2")
    assert (answer.low > 0).all()
    assert (answer.low <= answer.mid).all()
    assert (answer.mid <= answer.high).all()


def test_an_unseen_gpu_is_answered_by_its_siblings_with_wider_intervals(model: LayersModel) -> None:
    rows = random_layers(60)
    known, unseen = model.answer(rows, V100, "tensorflow1"), model.answer(rows, T4, "tensorflow1")
    assert (known.answered_by, unseen.answered_by) == ("layers", "layers, unseen GPU")
    assert np.median(unseen.high / unseen.low) > np.median(known.high / known.low)


def test_kepler_is_not_asked_about_newer_gpus(model: LayersModel) -> None:
    assert "kepler" not in {s.generation for s in model.siblings("conv2d", T4)}
    assert {s.generation for s in model.siblings("conv2d", find_device("K20"))} == {"kepler"}


def test_the_file_says_what_it_was_trained_on(model: LayersModel) -> None:
    assert set(model.card) == {"trained", "data", "rows", "scores"}


def test_a_file_of_another_version_says_how_to_make_it_again() -> None:
    with pytest.raises(BadInput, match=rf"{FILE} was written by another version; make it again"):
        from_bytes(gzip.compress(json.dumps({"format": 0}).encode()))
