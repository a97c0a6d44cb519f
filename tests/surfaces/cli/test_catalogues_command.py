from collections.abc import Callable
from pathlib import Path

import pytest

from epochcast.describe.capture.zoo import ZOO
from epochcast.hardware.catalogue import devices
from epochcast.hardware.machines import instances
from epochcast.surfaces.cli.guide import TRY

from .conftest import Command

CATALOGUES = ("models", "devices", "instances", "datasets", "links", "topologies")


@pytest.mark.parametrize("name", CATALOGUES)
def test_json_is_one_object_with_named_rows(name: str, command: Command) -> None:
    ran = command(f"{name} --json")
    assert (ran.code, ran.err, next(iter(ran.json))) == (0, "", name)
    names = [row["name"] for row in ran.json[name]]
    assert len(names) == len(set(names)) > 5


@pytest.mark.parametrize("name", CATALOGUES)
def test_the_table_names_every_row(name: str, command: Command) -> None:
    shown = command(name)
    assert (shown.code, shown.err) == (0, "")
    lines = [line.strip() for line in shown.out.splitlines()]
    for row in command(f"{name} --json").json[name]:
        assert any(line.startswith(row["name"]) for line in lines), row["name"]


def test_a_device_has_its_peaks_and_its_source(command: Command) -> None:
    rows = {row["name"]: row for row in command("devices --json").json["devices"]}
    assert len(rows) == len(devices())
    assert rows["V100-SXM2-16GB"]["peak_flops_per_second"]["fp16"] == 125e12
    assert all(row["source"] for row in rows.values())


def test_an_instance_names_a_device_of_the_catalogue(command: Command) -> None:
    known = {device.name for device in devices()}
    rows = command("instances --json").json["instances"]
    assert len(rows) == len(instances())
    assert all(row["device"] in known and row["dollars_per_hour"] > 0 for row in rows)


def test_models_can_be_counted(command: Command) -> None:
    rows = {row["name"]: row for row in command("models --counts --json").json["models"]}
    assert set(rows) == set(ZOO)
    assert rows["resnet50"]["parameters"] == 25_557_032
    assert rows["vit_b_16"]["forward_flops_per_sample"] == pytest.approx(2 * 17.56e9, rel=0.005)


def test_the_table_of_datasets(command: Command, snapshot: Callable[[str, str], None]) -> None:
    snapshot("datasets.txt", command("datasets").out)


def test_the_demo_answers_for_several_devices(command: Command) -> None:
    answer = command("demo --json").json
    answers = [answer["forecast"], *answer["elsewhere"]]
    assert len({(a["device"], a["precision"]) for a in answers}) == len(answers) == 5
    shown = command("demo").out
    assert all(a["device"] in shown for a in answers)
    assert all(f"epochcast {arguments}" in shown for _, arguments in TRY)


def test_a_device_is_printed_as_a_data_sheet_that_forecasts_take(command: Command, tmp_path: Path) -> None:
    printed = command("devices L4 --toml")
    assert printed.code == 0
    file = tmp_path / "mine.toml"
    file.write_text(printed.out)
    ran = command(f"forecast resnet18 --batch 8 --device {file} --json")
    assert (ran.code, ran.json["device"]) == (0, "my L4")
    assert command(f"devices {file} --json").json["devices"][0]["sheet"] == "mine.toml"


def test_named_devices_only(command: Command) -> None:
    assert [row["name"] for row in command("devices T4 L4 --json").json["devices"]] == ["T4", "L4"]
    ran = command("devices --toml")
    assert (ran.code, ran.err) == (2, "epochcast: --toml needs the name of a device\n")


def test_a_bad_data_sheet_is_one_line_with_file_and_key(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('memory = "8 GiB"\nfp32 = "10 TFLOPS"\ncompute_units = 20\n')
    for line in ("forecast resnet18 --batch 8", "advise resnet18", "scaling resnet18 --batch 8 --gpus 1,2"):
        ran = command(f"{line} --device {file}")
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert ran.err.startswith("epochcast: mine.toml: 'bandwidth' is missing; a data sheet needs memory, ")
