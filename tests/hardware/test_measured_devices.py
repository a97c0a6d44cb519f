import csv
from collections import Counter
from dataclasses import replace
from pathlib import Path

from epochcast.hardware.catalogue import find_device
from epochcast.hardware.measured_devices import measured_how, measured_steps

LEFT_OUT = Path(__file__).parents[2] / "studies" / "accuracy" / "left_out.csv"


def test_the_list_is_that_of_the_steps_that_were_left_out_in_turn() -> None:
    with LEFT_OUT.open(encoding="utf-8") as file:
        counted = Counter(row["device"] for row in csv.DictReader(file))
    assert set(measured_steps()) == set(counted), "renew hardware/measured.toml from studies/accuracy/left_out.csv"


def test_it_is_told_what_was_measured_of_a_device() -> None:
    assert measured_how(find_device("RTX 3090")) == "steps"
    assert measured_how(find_device("RTX 4070")) == "never"
    assert measured_how(find_device("V100-PCIE-16GB")) == "sister"
    assert measured_how(find_device("TPU v3")) is None
    assert measured_how(replace(find_device("RTX 3090"), sheet="mine.toml")) is None
