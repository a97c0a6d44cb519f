"""What tests share: the measured data where it is present, snapshots that `pytest --renew` rewrites, marks by file."""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# No test asserts seconds of its own run: a busy machine is no failure.
settings.register_profile("epochcast", deadline=None)
settings.load_profile("epochcast")

HERE = Path(__file__).parent
SNAPSHOTS = HERE / "snapshots"

# What `make test-quick` leaves out, by folder or file. Single tests carry the mark `slow` themselves.
MARKED = {
    "browser": ("web/test_browser.py",),
    "server": ("web", "cli/test_store.py", "observe/runs/recording"),
    "engine": ("schedule/engines", "bench/test_ray_engine.py", "store", "handover"),
    "slow": (
        # networks captured, trained, exported or built by the dozen
        "bench",
        "describe/capture/keras",
        "describe/capture/onnx",
        "describe/capture/torch",
        "describe/capture/zoo",
        "capture/test_agreement.py",
        "capture/test_apart.py",
        "capture/test_cache.py",
        "capture/test_hf.py",
        "capture/test_hf_live.py",
        "capture/test_hub.py",
        "capture/test_inspection.py",
        "capture/test_resolve.py",
        "capture/test_script.py",
        "forecasting/test_data.py",
        "forecasting/test_memory_laws.py",
        "forecasting/test_memory_twins.py",
        "forecasting/test_rank_memory.py",
        "observe/runs/callbacks",
        # whole tables of measurements and models fitted to them
        "fitting/test_calibrate.py",
        "fitting/test_evaluate.py",
        "fitting/test_run_table.py",
        "history",
        "studies",
        "training",
        # commands that start others, compile or measure; pages and examples
        "cli/test_advise.py",
        "cli/test_app.py",
        "cli/test_ascii_streams.py",
        "cli/test_bench.py",
        "cli/test_catalogues.py",
        "cli/test_columns.py",
        "cli/test_config.py",
        "cli/test_diff.py",
        "cli/test_evaluate.py",
        "cli/test_fit.py",
        "cli/test_hand_over.py",
        "cli/test_history.py",
        "cli/test_mistakes.py",
        "cli/test_schedule.py",
        "cli/test_schedule_run.py",
        "cli/test_script.py",
        "diffing",
        "integrations",
        "scheduling/test_compiling.py",
        "scheduling/test_policies.py",
        "tracking/test_events.py",
        "test_api.py",
        "test_charts.py",
        "test_ci_recipes.py",
        "test_examples.py",
        "test_orphans.py",
        "test_own_model_page.py",
        "test_pages.py",
        "test_threads.py",
    ),
}
# A test that asks for one of these fixtures starts a database server or a cluster.
ENGINES = {"postgres", "emptied", "with_tables", "slurm", "ray_cluster"}

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


def _marks(path: Path) -> list[str]:
    """The marks that a file has by its place."""
    return [mark for mark, places in MARKED.items() if any(path.is_relative_to(HERE / place) for place in places)]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file that `-m "not slow and not …"` leaves out is not imported either."""
    expression = config.option.markexpr
    if not re.fullmatch(r"not \w+( and not \w+)*", expression):
        return None
    return True if set(expression.split()) & set(_marks(collection_path)) else None


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for mark in _marks(item.path):
            item.add_marker(mark)
        params = getattr(getattr(item, "callspec", None), "params", {})
        if ENGINES & set(getattr(item, "fixturenames", ())) or params.get("database") == "postgresql":
            item.add_marker("engine")


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
