import gzip
import os
from collections.abc import Callable
from datetime import date
from importlib import metadata
from pathlib import Path

import pytest

from epochcast.hardware.catalogue import find_device
from epochcast.hardware.machines import instances
from epochcast.hardware.profile import Profile, profile_path, save_profile
from epochcast.surfaces import doctor
from epochcast.surfaces.doctor import DoctorReport, Folder, examine, extra_with, extras_of

TODAY = date(2026, 6, 1)
VERSION = metadata.version("epochcast")


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPOCHCAST_PROFILES", str(tmp_path / "profiles"))
    monkeypatch.setenv("EPOCHCAST_CACHE", str(tmp_path / "captures"))
    monkeypatch.setenv("EPOCHCAST_STORE", str(tmp_path / "store.db"))


def examined(here: Path) -> DoctorReport:
    return examine(VERSION, here, TODAY)


def folder(report: DoctorReport, what: str) -> Folder:
    return next(folder for folder in report.folders if folder.what == what)


Installed = Callable[..., None]


@pytest.fixture
def having(monkeypatch: pytest.MonkeyPatch) -> Installed:
    """`having(torch="2.3.1")`: these packages are installed and no others."""

    def set_versions(**versions: str) -> None:
        monkeypatch.setattr(doctor, "installed", versions.get)

    return set_versions


REQUIRES = ["numpy>=1.26", "torch>=2.4; extra == 'torch'", 'psycopg[binary]>=3.2; extra == "serve"']


def test_extras_are_read_from_the_metadata(having: Installed) -> None:
    having(torch="2.13.0+cpu")
    torch, serve = extras_of(["torch", "serve"], REQUIRES)
    assert (torch.packages[0].installed, torch.missing, torch.install) == ("2.13.0+cpu", (), "")
    assert [package.name for package in serve.missing] == ["psycopg"]
    assert serve.install == "pip install '.[serve]'"


def test_a_module_has_the_smallest_extra_for_users_that_brings_it() -> None:
    names = ("sqlalchemy", "sklearn", "prometheus_client", "timm", "nosuch")
    assert [extra_with(name) for name in names] == ["store", "fit", "serve", "timm", None]


def test_an_extra_of_extras_has_their_packages(having: Installed) -> None:
    having()
    extras = extras_of(["torch", "all"], [*REQUIRES, "epochcast[torch, serve]; extra == 'all'"])
    assert {package.name for package in extras[1].packages} == {"torch", "psycopg"}


@pytest.mark.parametrize(
    ("version", "wanted", "fits"),
    [
        ("2.4", ">=2.4", True),
        ("2.4.0", ">=2.4.0.0", True),
        ("2.10", ">=2.9", True),
        ("2.3.9", ">=2.4", False),
        ("2.13.0+cpu", "==2.13.0", True),
        ("3.0.dev1", ">=3", True),
        ("3.1", "<3,>=2", False),
        ("1.0", "~=0.9", True),  # not read, so not held against it
    ],
)
def test_versions_are_compared_as_numbers(having: Installed, version: str, wanted: str, fits: bool) -> None:
    having(torch=version)
    assert extras_of(["torch"], [f"torch{wanted}; extra == 'torch'"])[0].packages[0].fits is fits


def test_every_extra_of_the_package_is_there(tmp_path: Path) -> None:
    names = {extra.name for extra in examined(tmp_path).extras}
    assert names == set(metadata.metadata("epochcast").get_all("Provides-Extra") or ())
    assert {"torch", "keras", "all"} <= names


def test_a_package_that_is_too_old_is_a_problem(tmp_path: Path, having: Installed) -> None:
    having(torch="2.3.1")
    assert "torch 2.3.1 is installed, torch>=2.4 is needed" in examined(tmp_path).problems


def test_keras_without_a_backend_is_a_problem(tmp_path: Path, having: Installed) -> None:
    having(keras="3.5")
    assert any(problem.startswith("keras has no backend") for problem in examined(tmp_path).problems)
    having(keras="3.5", torch="2.5")
    assert not any(problem.startswith("keras has no backend") for problem in examined(tmp_path).problems)


def test_tensorflow_stands_in_for_tensorflow_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name != "tensorflow":
            raise metadata.PackageNotFoundError(name)
        return "2.17"

    monkeypatch.setattr(metadata, "version", version)
    assert (doctor.installed("tensorflow-cpu"), doctor.installed("torch")) == ("2.17", None)


def test_code_of_another_version_than_installed_is_a_problem(tmp_path: Path) -> None:
    assert examine("99.0", tmp_path, TODAY).problems[0].startswith(f"the code is version 99.0, but {VERSION}")


def test_code_that_is_not_installed_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def distribution(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", distribution)
    report = examined(tmp_path)
    assert report.extras == ()
    assert "is not installed, so its extras are unknown" in report.problems[0]


def test_folders_that_are_not_there_yet_are_no_problem(tmp_path: Path) -> None:
    profiles = folder(examined(tmp_path), "profiles")
    assert profiles == Folder("profiles", str(tmp_path / "profiles"))


def test_profiles_are_counted_and_dated(tmp_path: Path) -> None:
    for name, seconds in (("V100", 1.7e9), ("T4", 1.75e9)):
        device = find_device(name)
        path = profile_path(device)
        save_profile(Profile(device.name, "here", "measured", "2024-01-01"), path)
        os.utime(path, (seconds, seconds))
    profiles = folder(examined(tmp_path), "profiles")
    assert (profiles.files, profiles.damaged, profiles.is_writable) == (2, (), True)
    assert profiles.size_bytes > 0
    assert (profiles.oldest, profiles.newest) == (
        date.fromtimestamp(1.7e9).isoformat(),
        date.fromtimestamp(1.75e9).isoformat(),
    )


@pytest.mark.parametrize(
    ("name", "content"), [("v100.toml", b"[[profile]]\n"), ("t4.json", b"{}"), ("a.toml", b"\xff")]
)
def test_a_damaged_profile_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / name).write_bytes(content)
    report = examined(tmp_path)
    assert len(folder(report, "profiles").damaged) == 1
    assert report.problems[0].startswith(f"damaged: {name}: ")


def test_a_damaged_capture_is_named_and_a_whole_one_is_not(tmp_path: Path) -> None:
    captures = tmp_path / "captures"
    captures.mkdir()
    (captures / "whole.json.gz").write_bytes(gzip.compress(b"{}"))
    (captures / "cut.json.gz").write_bytes(gzip.compress(b"{}" * 100)[:-4])
    packed = gzip.compress(bytes(range(256)) * 4)
    flipped = [packed[:place] + bytes([packed[place] ^ 16]) + packed[place + 1 :] for place in range(10, 60)]
    for place, content in enumerate(flipped):
        (captures / f"flipped{place}.json.gz").write_bytes(content)
    found = folder(examined(tmp_path), "captured models")
    assert (found.files, len(found.damaged), found.unchecked) == (52, 51, 0)
    assert any(one.startswith("cut.json.gz: ") for one in found.damaged)
    assert not any(one.startswith("whole.json.gz") for one in found.damaged)


def test_only_so_much_of_the_cache_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    captures = tmp_path / "captures"
    captures.mkdir()
    for place in range(3):
        (captures / f"{place}.json.gz").write_bytes(gzip.compress(b"{}", mtime=0))
    monkeypatch.setattr(doctor, "CHECKED_BYTES", (captures / "0.json.gz").stat().st_size)
    assert folder(examined(tmp_path), "captured models").unchecked == 2


def test_a_cache_that_is_off_has_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPOCHCAST_CACHE", "off")
    assert folder(examined(tmp_path), "captured models").path is None


def test_a_folder_that_cannot_be_written_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "profiles").write_text("a file, not a folder")
    problems = examined(tmp_path).problems
    assert f"profiles cannot be saved: {tmp_path / 'profiles'} is not writable" in problems


def test_the_job_file_is_found_above(tmp_path: Path) -> None:
    assert examined(tmp_path).job_file is None
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "epochcast.toml").write_text("")
    assert examined(tmp_path / "a" / "b").job_file == str(tmp_path / "epochcast.toml")


def test_prices_are_counted_and_dated(tmp_path: Path) -> None:
    prices, rows = examined(tmp_path).prices, instances()
    assert prices.instances == len(rows)
    assert prices.oldest == min(row.priced_on for row in rows)
    assert prices.newest == max(row.priced_on for row in rows)
    assert prices.recalled == sum(not row.verified for row in rows)


def test_a_price_of_a_year_may_be_of_its_last_day(tmp_path: Path) -> None:
    of_2019 = sum(row.priced_on == "2019" for row in instances())
    assert examine(VERSION, tmp_path, date(2020, 3, 30)).prices.stale == 0
    assert examine(VERSION, tmp_path, date(2020, 3, 31)).prices.stale == of_2019 > 0


def test_stale_prices_are_a_problem(tmp_path: Path) -> None:
    assert any("list prices are older than 90 days" in problem for problem in examined(tmp_path).problems)
    assert not any("prices" in problem for problem in examine(VERSION, tmp_path, date(2019, 6, 1)).problems)


def test_shipped_models_say_their_format_and_date(tmp_path: Path) -> None:
    for model in examined(tmp_path).models:
        assert model.format >= 1
        assert model.trained is not None
        assert date.fromisoformat(model.trained) > date(2020, 1, 1)
