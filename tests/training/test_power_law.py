"""The shipped energies of flops follow from the measurements, and the law helps on boards that were left out."""

from dataclasses import replace

import numpy as np
import pytest

from epochcast.base import catalogue_rows
from epochcast.hardware import power_law
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.power_law import Energy, clock_with, load_energies
from training.files import data_folder
from training.power_law import SustainedProduct, energies_toml, fitted, left_out, products


@pytest.fixture(autouse=True)
def _packages() -> None:
    for package in ("polars", "scipy"):
        pytest.importorskip(package, reason=f"fitting energies needs {package}")


def test_the_energy_of_made_up_boards_is_recovered() -> None:
    """Boards of one chip at 50 to 250 W that take 20 pJ per flop, and 0.88 of the peak at the full clock."""
    true = Energy(20e-12, 2e-12)
    boards = [replace(find_device("TITAN RTX"), name=f"at {watts} W", watts=watts) for watts in (50.0, 90, 130, 250)]
    fractions = [0.88 * clock_with(true, board, "fp32") for board in boards]
    made_up = [SustainedProduct(board, "vector", f) for board, f in zip(boards, fractions, strict=True)]
    assert fitted(made_up)["turing"].vector == pytest.approx(20e-12, rel=0.05)


@pytest.mark.needs_data
def test_the_shipped_energies_are_those_of_the_measurements() -> None:
    shipped = load_energies(catalogue_rows.shipped(power_law.FILE, power_law.__file__))
    again = load_energies(energies_toml(fitted(products(data_folder()))))
    assert again.keys() == shipped.keys()
    for chips, energy in shipped.items():
        assert (again[chips].vector, again[chips].half) == pytest.approx((energy.vector, energy.half), rel=0.02)


@pytest.mark.needs_data
def test_the_law_is_nearer_than_similar_boards_alone() -> None:
    few = [b for b in products(data_folder()) if b.device.name in {"T4", "L4", "A10", "RTX 4090", "RTX 3090", "P4"}]
    answers = [each for each in left_out(few) if each[0].format == "vector"]
    misses = np.abs(np.log([[plain / board.fraction, lawful / board.fraction] for board, plain, lawful in answers]))
    assert misses[:, 1].mean() < 0.8 * misses[:, 0].mean()
