"""SkyPilot's catalogue files, as they are published, into machines; and servers of one's own."""

from datetime import date
from pathlib import Path

import pytest

from epochcast.errors import BadInput
from epochcast.hardware.boards import is_region, region_patterns
from epochcast.hardware.machines import find_instance, instances
from epochcast.hardware.own_machines import (
    Description,
    Purchase,
    add_machine,
    import_catalogues,
    own_machine,
    remove_machine,
)
from epochcast.hardware.price_list import price_list_text, read_price_list

HEADER = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone\n"
)
AWS = HEADER + (
    "m5.large,,,2.0,8.0,,0.096,0.03,us-east-1,us-east-1a\n"
    "p4d.24xlarge,A100,8.0,96.0,1152.0,\"{'Gpus': [{'Name': 'A100'}]}\",20.5,7.5,us-east-1,us-east-1a\n"
    "p4d.24xlarge,A100,8.0,96.0,1152.0,,20.5,6.5,us-east-1,us-east-1b\n"
    "p4d.24xlarge,A100,8.0,96.0,1152.0,,25.0,,eu-west-1,eu-west-1a\n"
    "trn1.2xlarge,Trainium,1.0,8.0,32.0,,1.34,0.4,us-east-1,us-east-1a\n"
    "g6f.xlarge,L4,0.125,4.0,16.0,,0.2,,us-east-1,us-east-1a\n"
)
GCP = HEADER + (
    "a2-highgpu-1g,,,12.0,85.0,,0.74,0.22,us-central1,us-central1-a\n"
    ",A100,1.0,,,,2.93,0.88,us-central1,us-central1-a\n"
    ",T4,1.0,,,,0.35,0.11,us-central1,us-central1-a\n"
)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EPOCHCAST_PRICES", str(tmp_path / "prices"))
    return tmp_path / "prices"


def written(folder: Path, cloud: str, text: str) -> Path:
    (folder / cloud).mkdir(exist_ok=True)
    file = folder / cloud / "vms.csv"
    file.write_text(text)
    return file


def test_a_catalogue_refreshes_the_prices(tmp_path: Path) -> None:
    before = find_instance("p4d.24xlarge").dollars_per_hour
    found = import_catalogues([written(tmp_path, "aws", AWS)], read_on="2026-11-01")
    box = find_instance("p4d.24xlarge")
    assert before != box.dollars_per_hour == 20.5
    assert (box.cloud, box.device, box.region, box.priced_on) == ("aws", "A100-SXM4-40GB", "us-east-1", "2026-11-01")
    assert box.spot_dollars_per_hour == 6.5  # the cheaper zone
    assert {one.region: one.dollars_per_hour for one in box.regions} == {"us-east-1": 20.5, "eu-west-1": 25.0}
    assert box.outer_link == "efa_400"
    assert {one.instance: one.reason for one in found.skipped} == {
        "trn1.2xlarge": "no data sheet of 'Trainium'",
        "g6f.xlarge": "a part of a GPU",
    }


def test_accelerators_priced_apart_are_added_to_their_host(tmp_path: Path) -> None:
    found = import_catalogues([written(tmp_path, "gcp", GCP)])
    (box,) = found.machines
    assert (box.name, box.gpus) == ("a2-highgpu-1g", 1)
    assert box.dollars_per_hour == pytest.approx(3.67)
    assert box.spot_dollars_per_hour == pytest.approx(1.10)
    assert [one.reason for one in found.skipped] == ["accelerators without a host: the machine around them costs extra"]


def test_several_files_are_imported_together_and_what_is_not_listed_stays(tmp_path: Path) -> None:
    before = len(instances())
    found = import_catalogues([written(tmp_path, "aws", AWS), written(tmp_path, "gcp", GCP)])
    assert [path.name for path in found.paths] == ["aws.csv", "gcp.csv"]
    assert len(instances()) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (AWS.replace("20.5,7.5", "cheap,7.5"), "line 3: 'Price' must be a number, got 'cheap'"),
        (AWS.replace(",25.0,,", ",-25.0,,"), "line 5: 'Price' must be at least 0, got '-25.0'"),
        (AWS.replace("Region", "Place"), "line 1: column 'Region' is missing"),
        (AWS + "p5.48xlarge,H100\n", "line 8: "),
        (HEADER, "no machine with a known GPU and a price"),
    ],
)
def test_a_malformed_file_is_told_with_line_and_column_and_nothing_is_written(
    tmp_path: Path, own_folder: Path, text: str, message: str
) -> None:
    file = written(tmp_path, "aws", text)
    with pytest.raises(BadInput) as caught:
        import_catalogues([file])
    assert str(caught.value).startswith(str(file)) and message in str(caught.value)
    assert not own_folder.exists()


def test_the_price_list_is_read_back_as_it_was_written() -> None:
    listed = [one for one in instances() if one.price_cells]
    again = {(one.cloud, one.name): one for one in read_price_list(price_list_text(listed), "offers.csv")}
    assert len(again) == len(listed)
    assert all(again[one.cloud, one.name] == one for one in listed)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ("eight,96,1152,pcie4,,,2026,s,a:1:", "line 2: 'gpus' must be a number, got 'eight'"),
        ("8,96,1152,pcie4,,,2026,s,a=1", "line 2: 'prices': prices are written"),
        ("8,96,1152,pcie4,,,2026,s,a::3", "line 2: 'prices': no price on demand"),
        ("0,96,1152,pcie4,,,2026,s,a:1:", "line 2: gpus must be at least 1, got 0"),
        ("8,96", "line 2: 'prices' is missing"),
    ],
)
def test_a_faulty_row_of_a_price_list_is_named(cells: str, message: str) -> None:
    header = price_list_text([])
    with pytest.raises(BadInput) as caught:
        list(read_price_list(f"{header}aws,x,T4,{cells}\n", "mine.csv"))
    assert str(caught.value).startswith(f"mine.csv, {message}")


# by hand: 250,000 over 3 years at 70 % is 13.581 an hour, and 6.5 kW at 15 cents 0.975
def test_a_purchase_by_hand() -> None:
    bought = Purchase(250_000, 3, 6_500, 0.15, 0.7)
    assert bought.dollars_per_hour == pytest.approx(250_000 / (3 * 8766 * 0.7) + 0.975)


@pytest.mark.parametrize("wrong", [{"years": 0}, {"utilization": 1.5}, {"dollars": -1}, {"watts": -1}])
def test_a_purchase_makes_sense(wrong: dict[str, float]) -> None:
    with pytest.raises(BadInput):
        Purchase(**{"dollars": 1.0, "years": 1.0, **wrong})


def test_an_own_machine_is_added_replaced_and_removed(own_folder: Path) -> None:
    today = date(2026, 11, 17)
    add_machine(own_machine(Description("lab", "RTX A6000", 4), 2.5, today))
    add_machine(own_machine(Description("other", "T4", 1, link="ethernet_10g"), 1.0, today))
    add_machine(own_machine(Description("lab", "RTX A6000", 2), Purchase(20_000, 4), today))
    lab = find_instance("lab")
    assert (lab.cloud, lab.gpus, lab.cpus, lab.outer_link) == ("own", 2, 16, "")
    assert lab.dollars_per_hour == pytest.approx(20_000 / (4 * 8766))
    assert find_instance("own/other").outer_link == "ethernet_10g"
    remove_machine("lab")
    assert {one.name for one in instances() if one.cloud == "own"} == {"other"}
    with pytest.raises(BadInput, match="no own instance called 'lab'; own: other"):
        remove_machine("lab")


def test_a_malformed_file_of_own_machines_is_told_with_line_and_key(own_folder: Path) -> None:
    own_folder.mkdir()
    path = own_folder / "own.toml"
    add_machine(own_machine(Description("one", "T4"), 1.0, date(2026, 11, 17)))
    text = path.read_text()
    path.write_text(
        text + "\n" + text.replace("one", "two").replace("dollars_per_hour = 1.0", 'dollars_per_hour = "a"')
    )
    with pytest.raises(BadInput) as caught:
        instances()
    line = len(text.splitlines()) + 2
    assert str(caught.value).startswith(f"{path}, line {line}, [[instance]] row 2 (two): 'dollars_per_hour' must be a")
    path.write_text(text.replace('"T4"', '"T5"'))
    with pytest.raises(BadInput, match=r"own.toml, line 1, \[\[instance\]\] row 1 \(one\): 'device': no device called"):
        instances()


def test_names_of_regions_mean_many() -> None:
    europe = region_patterns(["europe"])
    assert all(is_region(name, europe) for name in ("eu-west-1", "europe-west4", "fr-par", "FIN-01", "NL"))
    assert not any(is_region(name, europe) for name in ("us-east-1", "ap-south-1", "CA"))
    assert is_region("us-east-1", region_patterns(["us-east"])) and not is_region(
        "us-west-1", region_patterns(["us-east"])
    )
