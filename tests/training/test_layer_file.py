import numpy as np
import pytest
from tests.predict.cost.test_layers_model import random_layers

from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_device
from epochcast.predict.cost.layers_model import LayersModel, from_bytes, layers_model
from training.layer_calibration import calibrated, calibrated_answer
from training.layer_file import to_bytes

P100, V100, T4 = find_device("P100-PCIe"), find_device("V100"), find_device("T4")


@pytest.fixture(scope="module")
def model() -> LayersModel:
    return layers_model()


def test_fifty_rows_of_an_unseen_gpu_find_its_scale(model: LayersModel) -> None:
    """A GPU that runs like a V100 at a third of its speed: known from fifty rows to a few percent."""
    rows = random_layers(250)
    truth = 3 * model.answer(rows, V100, "tensorflow1").mid
    given, asked = np.arange(50), np.arange(50, 250)
    calibration = calibrated(model, rows.at(given), V100, truth[given])
    answer = calibrated_answer(model, rows.at(asked), V100, calibration)
    assert np.mean(np.abs(answer.mid / truth[asked] - 1)) < 0.05


def test_calibration_from_three_rows_is_refused(model: LayersModel) -> None:
    with pytest.raises(BadInput, match="at least 10 measured rows, got 3"):
        calibrated(model, random_layers(3), T4, np.ones(3))


def test_the_file_gives_the_model_back(model: LayersModel) -> None:
    rows = random_layers(20)
    data = to_bytes(model)
    assert np.array_equal(
        from_bytes(data).answer(rows, P100, "tensorflow2").mid, model.answer(rows, P100, "tensorflow2").mid
    )
    assert to_bytes(from_bytes(data)) == data


def test_the_file_is_small(model: LayersModel) -> None:
    assert len(to_bytes(model)) < 600_000
