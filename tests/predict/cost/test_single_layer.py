import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.errors import BadInput, UnknownName
from epochcast.predict.cost.layer_terms import ARTEFACT_TERMS
from epochcast.predict.cost.single_layer import PARTS, LayerRows, parts


def layer(
    batch: int = 2,
    size: int = 8,
    kernel: int = 3,
    stride: int = 1,
    padding: str = "same",
    into: int = 4,
    out: int = 16,
    optimizer: str = "adam",
    activation: str = "relu",
    kind: str = "conv2d",
) -> LayerRows:
    """One row."""
    return LayerRows(
        kind,
        np.array([float(batch)]),
        np.array([float(size)]),
        np.array([float(kernel)]),
        np.array([float(stride)]),
        np.array([padding == "same"]),
        np.array([float(into)]),
        np.array([float(out)]),
        np.array([True]),
        np.array([activation]),
        np.array([optimizer]),
        np.array([optimizer != "none"]),
    )


def test_sizes_by_hand() -> None:
    rows = layer(size=7, kernel=3, stride=2)
    assert (rows.output_size[0], rows.padding[0]) == (4, 2)  # ⌈7/2⌉; 3·2 + 3 − 7
    assert layer(size=7, kernel=3, stride=2, padding="valid").output_size[0] == 3


def test_elements_and_flops_by_hand() -> None:
    rows = layer()
    assert (rows.input_elements[0], rows.output_elements[0], rows.weight_elements[0]) == (512, 2048, 576)
    assert rows.product_flops[0] == 2 * 2048 * 9 * 4


def test_the_optimizer_runs_on_input_and_target_too() -> None:
    """Adam moves 40 bytes per element: 512 of the input, 2,048 of the target, 576 weights."""
    work = parts(layer())
    assert work["update_input"].bytes[0] == 40 * 512
    assert work["update_target"].bytes[0] == 40 * 2048
    assert work["update_weights"].bytes[0] == 40 * 576


def test_artefacts_are_loss_and_updates_of_activations() -> None:
    work = parts(layer())
    assert sum(work[name].bytes[0] for name in ARTEFACT_TERMS) == 40 * (512 + 2048) + 12 * 4 * 2048


def test_a_forward_run_has_no_artefact() -> None:
    work = parts(layer(optimizer="none"))
    assert all(work[name].bytes[0] == 0 for name in ARTEFACT_TERMS)
    assert all(work[name].flops[0] == 0 for name in ("data_gradient", "weight_gradient", *ARTEFACT_TERMS))


def test_every_part_has_an_entry_per_row() -> None:
    work = parts(layer())
    assert tuple(work) == PARTS
    assert {len(columns) for columns in work.values()} == {1}


def test_both_gradients_cost_the_forward_flops() -> None:
    work = parts(layer())
    assert work["data_gradient"].flops[0] == work["weight_gradient"].flops[0] == work["product"].flops[0]


@given(batch=st.integers(1, 64), more=st.integers(1, 64), stride=st.integers(1, 4), out=st.integers(1, 64))
def test_a_larger_batch_never_moves_less(batch: int, more: int, stride: int, out: int) -> None:
    few, many = (parts(layer(batch=n, stride=stride, out=out)) for n in (batch, batch + more))
    assert all(many[name].bytes[0] >= few[name].bytes[0] for name in PARTS)


def test_a_window_larger_than_its_image_is_refused() -> None:
    with pytest.raises(BadInput, match="window does not fit"):
        layer(size=2, kernel=3, padding="valid")


def test_an_unknown_optimizer_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="no optimizer of the single-layer benchmark called 'lion'; known: adadelta"):
        layer(optimizer="lion")
