"""Prices from gpuhunt's published catalogue, SkyPilot's files, files and URLs.

`SERVED` has the files that gpuhunt's project publishes, in the form that its own code writes and reads; the library
downloads them from a server of this test.
"""

import io
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from epochcast.errors import BadInput
from epochcast.hardware.machines import find_instance, instances
from epochcast.hardware.price_update import PriceUpdate, update_prices

TODAY = "2026-11-19"
HEADER = (
    "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags,cpu_arch,"
    "provider_data\n"
)
GPUHUNT_AWS = HEADER + (
    "p4d.24xlarge,us-east-1,20.5,96,1152.0,8,A100,40.0,False,,nvidia,,x86,{}\n"
    "p4d.24xlarge,us-east-1,6.5,96,1152.0,8,A100,40.0,True,,nvidia,,x86,{}\n"
    "p4d.24xlarge,eu-west-1,25.0,96,1152.0,8,A100,40.0,False,,nvidia,,x86,{}\n"
    "m5.large,us-east-1,0.096,2,8.0,0,,,False,,,,x86,{}\n"
    "g6.xlarge,us-east-1,0,4,16.0,1,L4,24.0,False,,nvidia,,x86,{}\n"
)
GPUHUNT_LAMBDA = HEADER + "gpu_8x_a100_80gb_sxm4,us-west-1,14.0,240,1800.0,8,A100,80.0,False,,nvidia,,x86,{}\n"
SKYPILOT_AWS = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone\n"
    "p4d.24xlarge,A100,8.0,96.0,1152.0,,19.0,7.5,us-east-1,us-east-1a\n"
)
PROVIDERS = ("aws", "azure", "verda", "gcp", "lambdalabs", "nebius", "oci", "runpod", "cloudrift")


def zipped(name: str, text: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(name, text)
    return content.getvalue()


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EPOCHCAST_PRICES", str(tmp_path / "prices"))
    return tmp_path / "prices"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    texts = {"aws": GPUHUNT_AWS, "lambdalabs": GPUHUNT_LAMBDA}
    files = {f"/v3/{name}/version": b"20261118-7" for name in PROVIDERS}
    for name in PROVIDERS:
        files[f"/v3/{name}/20261118-7/catalog.zip"] = zipped(f"{name}.csv", texts.get(name, HEADER))
    files["/aws/vms.csv"] = SKYPILOT_AWS.encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = files.get(self.path)
            self.send_response(200 if content is not None else 404)
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *arguments: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        Thread(target=served.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{served.server_port}"
        monkeypatch.setenv("GPUHUNT_CATALOG_URL", f"{url}/v3")
        yield url
        served.shutdown()


def test_gpuhunts_catalogue_refreshes_prices_with_source_and_day(server: str) -> None:
    pytest.importorskip("gpuhunt")
    before = find_instance("p4d.24xlarge").dollars_per_hour
    answer = update_prices((), TODAY)
    box = find_instance("p4d.24xlarge")
    assert (box.dollars_per_hour, box.spot_dollars_per_hour, box.region) == (20.5, 6.5, "us-east-1")
    assert (box.priced_on, box.source) == ("2026-11-18", "github.com/dstackai/gpuhunt")
    assert (box.device, box.outer_link) == ("A100-SXM4-40GB", "efa_400")
    assert {region.region: region.dollars_per_hour for region in box.regions} == {"us-east-1": 20.5, "eu-west-1": 25.0}
    assert find_instance("gpu_8x_a100_80gb_sxm4").cloud == "lambda"
    (change,) = [change for change in answer.changes if change.name == "p4d.24xlarge"]
    assert (change.before_dollars_per_hour, change.dollars_per_hour) == (before, 20.5)
    assert {skipped.instance: skipped.reason for skipped in answer.skipped} == {"g6.xlarge": "no price on demand"}


def test_an_update_says_what_changed(tmp_path: Path) -> None:
    def updated(text: str) -> PriceUpdate:
        (tmp_path / "aws.csv").write_text(text)
        return update_prices([str(tmp_path / "aws.csv")], TODAY)

    row = "p5.48xlarge,us-east-1,50.0,192,2048.0,8,H100,80.0,False,,nvidia,,x86,{}\n"
    updated(GPUHUNT_AWS + row)
    answer = updated(GPUHUNT_AWS.replace("20.5", "18.45") + row + row.replace("p5.48xlarge", "p5.new"))
    assert (answer.cheaper, answer.dearer, answer.new, answer.unchanged) == (1, 0, 1, 1)
    assert answer.changes[0].ratio == pytest.approx(0.9)
    assert (answer.oldest, answer.newest) == (TODAY, TODAY)


def test_what_a_new_list_no_longer_has_goes_and_other_gpus_stay(tmp_path: Path) -> None:
    others = {one.name for one in instances() if one.cloud == "aws" and one.device != "A100-SXM4-40GB"}
    (tmp_path / "aws.csv").write_text(SKYPILOT_AWS.replace("p4d.24xlarge", "p4d.48xlarge"))
    assert update_prices([str(tmp_path / "aws.csv")], TODAY).replaced == 1
    now = {one.name for one in instances() if one.cloud == "aws"}
    assert "p4d.48xlarge" in now and "p4d.24xlarge" not in now and others <= now


def test_a_url_of_skypilots_file_is_read(server: str) -> None:
    answer = update_prices([f"{server}/aws/vms.csv"], TODAY)
    assert (answer.instances, find_instance("p4d.24xlarge").dollars_per_hour) == (1, 19.0)
    assert find_instance("p4d.24xlarge").source == f"{server}/aws/vms.csv"


def test_skypilots_catalogue_is_read_cloud_by_cloud() -> None:
    asked: list[str] = []

    def fetch(url: str) -> bytes:
        asked.append(url)
        header = SKYPILOT_AWS.partition("\n")[0] + "\n"
        return (SKYPILOT_AWS if "/aws/" in url else header).encode()

    assert update_prices(["skypilot"], TODAY, fetch=fetch).instances == 1
    assert all(url.endswith("/vms.csv") for url in asked) and len(asked) == len(set(asked)) > 15


def test_a_zipped_list_is_read(tmp_path: Path) -> None:
    (tmp_path / "catalog.zip").write_bytes(zipped("lambdalabs.csv", GPUHUNT_LAMBDA))
    update_prices([str(tmp_path / "catalog.zip")], TODAY)
    assert find_instance("gpu_8x_a100_80gb_sxm4").dollars_per_hour == 14.0


def test_without_a_network_prices_stay(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match=r"vms.csv cannot be read: .*; prices stay as they are"):
        update_prices(["http://127.0.0.1:9/aws/vms.csv"], TODAY)
    pytest.importorskip("gpuhunt")
    monkeypatch.setenv("GPUHUNT_CATALOG_URL", "http://127.0.0.1:9/v3")
    with pytest.raises(BadInput, match=r"gpuhunt's catalogue cannot be downloaded: .*; prices stay as they are"):
        update_prices([], TODAY)
    assert not own_folder.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            GPUHUNT_AWS.replace("gpu_count", "gpus"),
            "is no price list of a known version: expected the columns of SkyPilot",
        ),
        (GPUHUNT_AWS.replace("20.5", "cheap"), "line 2: 'price' must be a number, got 'cheap'"),
        (GPUHUNT_AWS.replace("20.5", "-1"), "line 2: 'price' must be at least 0, got '-1'"),
        (GPUHUNT_AWS.replace("False", "maybe"), "line 2: 'spot' must be True or False, got 'maybe'"),
        (GPUHUNT_AWS + "p5,us\n", "line 7: the row and the header differ in their number of cells"),
        (HEADER, "no machine with a known GPU and a price"),
        ("", "is no price list of a known version"),
    ],
)
def test_a_faulty_list_is_refused_in_one_line_and_nothing_is_written(
    tmp_path: Path, own_folder: Path, text: str, message: str
) -> None:
    (tmp_path / "aws.csv").write_text(text)
    with pytest.raises(BadInput) as caught:
        update_prices([str(tmp_path / "aws.csv")], TODAY)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert not own_folder.exists()


def test_an_unknown_source_says_what_there_is() -> None:
    with pytest.raises(BadInput, match="No such file or directory; give gpuhunt, skypilot, a file or a URL"):
        update_prices(["gpuhint"], TODAY)
    with pytest.raises(BadInput, match="prices are read from files, http:// and https://"):
        update_prices(["ftp://example.org/aws.csv"], TODAY, fetch=lambda url: b"")
