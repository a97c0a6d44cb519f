"""What tests share: the measured data, where it is present, and snapshots that `pytest --renew` rewrites."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# No test asserts seconds of its own run: a busy machine is no failure.
settings.register_profile("epochcast", deadline=None)
settings.load_profile("epochcast")

SNAPSHOTS = Path(__file__).parent / "snapshots"

Matches = Callable[[Path, str], None]
Snapshot = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--renew", action="store_true", help="rewrite snapshots and examples/*.out with what is printed now"
    )


_STATUS = pytest.StashKey[int]()


def pytest_configure() -> None:
    """Answers that tell the time tell the same one, and nobody's own prices count."""
    os.environ["EPOCHCAST_NOW"] = "2026-11-17T09:00"
    os.environ["EPOCHCAST_PRICES"] = str(SNAPSHOTS / "no such folder")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.config.stash[_STATUS] = int(exitstatus)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave without the interpreter's farewell where torch and Ray share the process.

    Everything has been reported by now. Their threads and static destructors now and then end in a segmentation fault
    when both are unloaded, and a run that passed would count as failed.
    """
    if _STATUS in config.stash and not hasattr(config, "workerinput") and {"torch", "ray"} <= sys.modules.keys():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(config.stash[_STATUS])


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("needs_data"):
        _data_folder()


def _data_folder() -> Path:
    """The folder of measurements, or a skip that says why."""
    named = os.environ.get("EPOCHCAST_DATA")
    if not named:
        pytest.skip("EPOCHCAST_DATA does not name the folder of measurements")
    if not Path(named).is_dir():
        pytest.skip(f"EPOCHCAST_DATA names {named!r}, which is no folder")
    return Path(named)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of measurements; a test that asks for it is skipped where there is none."""
    return _data_folder()


@pytest.fixture(scope="session")
def matches(request: pytest.FixtureRequest) -> Matches:
    """`matches(path, text)`: the file at `path` holds exactly `text`; with --renew it is made to."""
    renew: bool = request.config.getoption("--renew")

    def check(path: Path, text: str) -> None:
        if renew:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        if not path.exists():
            pytest.fail(f"{path.name} is not there yet; write it with: pytest --renew", pytrace=False)
        assert text == path.read_text(encoding="utf-8"), f"{path.name} differs; if that is right: pytest --renew"

    return check


@pytest.fixture(scope="session")
def snapshot(matches: Matches) -> Snapshot:
    """`snapshot(name, text)`: the same for a file in tests/snapshots."""
    return lambda name, text: matches(SNAPSHOTS / name, text)
