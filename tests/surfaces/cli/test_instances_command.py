from pathlib import Path

import pytest

from .conftest import Command

CSV = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,AvailabilityZone\n"
    "p4d.24xlarge,A100,8,96,1152,20.5,7.5,us-east-1,us-east-1a\n"
    "trn1.2xlarge,Trainium,1,8,32,1.34,,us-east-1,us-east-1a\n"
)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EPOCHCAST_PRICES", str(tmp_path / "prices"))
    return tmp_path / "prices"


def test_prices_have_a_region_a_day_and_an_age(command: Command) -> None:
    rows = command("instances --clouds aws --devices A100 --regions eu-north-1 --json").json["instances"]
    (row,) = [row for row in rows if row["name"] == "p4d.24xlarge"]
    assert (row["region"], row["dollars_per_hour"], row["spot_dollars_per_hour"]) == ("eu-north-1", 23.7157, 8.1611)
    assert (row["priced_on"], row["price_age_days"]) == ("2026-08-22", 87)
    assert {"region": "us-east-1", "dollars_per_hour": 21.9576, "spot_dollars_per_hour": 10.1302} in row["regions"]


def test_an_import_refreshes_prices_and_tells_what_it_left_out(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "aws.csv"
    file.write_text(CSV)
    ran = command(f"instances import {file} --read-on 2026-11-16 --json")
    assert (ran.code, ran.json["instances"]) == (0, 1)
    assert ran.json["skipped"][0]["reason"] == "no data sheet of 'Trainium'"
    (row,) = command("instances --clouds aws --devices A100-SXM4-40GB --json").json["instances"]
    assert (row["dollars_per_hour"], row["priced_on"]) == (20.5, "2026-11-16")
    assert "1 skipped: no data sheet of 'Trainium'" in command(f"instances import {file}").out


def test_an_own_server_is_planned_with(command: Command) -> None:
    added = command("instances add lab --device RTX-A6000 --gpus 4 --price 2.5/h")
    assert added.code == 0 and "lab: 4 × RTX A6000 at $2.50 per hour" in added.out
    body = command("plan mnist_cnn --samples 60000 --batch 512 --clouds own --gpus 4 --objective cheapest --json").json
    assert (body["chosen"]["offer"], body["chosen"]["dollars_per_hour"]) == ("lab", 2.5)
    assert command("instances remove lab").code == 0
    assert command("plan mnist_cnn --samples 60000 --batch 512 --clouds own").code == 2


def test_a_bought_server_costs_its_years_and_its_power(command: Command) -> None:
    line = "--purchase 250000 --years 3 --power 6.5kW --electricity 0.15/kWh --utilization 0.7 --json"
    body = command(f"instances add dgx --device H100 --gpus 8 {line}").json
    assert body["instance"]["dollars_per_hour"] == pytest.approx(250_000 / (3 * 8766 * 0.7) + 6.5 * 0.15)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("add x --device T5 --price 1", "no device called 'T5'; near: "),
        ("add x --device T4", "a machine has one price: --price per hour, or --purchase with --years"),
        ("add x --device T4 --price 1 --purchase 5", "a machine has one price"),
        ("add x --device T4 --purchase 5 --power 1kW", "give --power and --electricity"),
        ("add x --device T4 --price dear", "'dear' is not a price in dollars per hour"),
        ("add x --device T4 --price 0", "dollars_per_hour must be above 0"),
        ("add x --device T4 --purchase 5 --years 0", "years of a purchase must be above 0"),
        ("add x --device T4 --price 1 --link string", "no link called 'string'"),
        ("import nowhere.csv", "nowhere.csv: No such file or directory"),
        ("--regions mars", "no region called 'mars'"),
    ],
)
def test_bad_input_is_one_line(command: Command, line: str, message: str, own_folder: Path) -> None:
    ran = command(f"instances {line}")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert message in ran.err
    assert not own_folder.exists()


def test_a_malformed_own_file_is_told_wherever_prices_are_needed(command: Command, own_folder: Path) -> None:
    own_folder.mkdir()
    (own_folder / "own.toml").write_text('[[instance]]\nname = "x"\ncloud = "own"\ndevice = "T4"\ngpus = "two"\n')
    for line in ("instances", "plan mnist_cnn --samples 100 --batch 8", "forecast mnist_cnn --device T4 --batch 8"):
        ran = command(line)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert "own.toml, line 1, [[instance]] row 1 (x): 'gpus' must be a whole number, got 'two'" in ran.err


def test_a_price_file_without_rows_of_machines_is_told(command: Command, own_folder: Path) -> None:
    own_folder.mkdir()
    (own_folder / "own.toml").write_text("[instances]\nname = 'x'\n")
    ran = command("instances")
    assert (ran.code, "own.toml: unknown key 'instances'; machines are [[instance]] rows" in ran.err) == (2, True)
