"""What tests share: the measured data where it is present, snapshots that `pytest --renew` rewrites, marks by file."""

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from functools import cache
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
    "engine": ("schedule/engines", "measure/bench/test_ray_campaign.py", "observe/store", "decide/handover"),
    "browser": ("surfaces/web/test_browser.py",),
    "server": ("surfaces/web", "surfaces/cli/test_store_command.py", "observe/recording"),
    "slow": (
        # networks captured, trained, exported or built by the dozen
        "measure/bench",
        "describe/capture/keras",
        "describe/capture/onnx",
        "describe/capture/torch",
        "describe/capture/zoo",
        "describe/capture/test_agreement.py",
        "describe/capture/test_subprocess_capture.py",
        "describe/capture/test_capture_cache.py",
        "describe/capture/test_hf.py",
        "describe/capture/test_hf_live.py",
        "describe/capture/test_hub.py",
        "describe/capture/test_inspection.py",
        "describe/capture/test_no_network.py",
        "describe/capture/test_resolve.py",
        "describe/capture/test_script.py",
        "predict/forecast/test_job_data.py",
        "predict/forecast/test_memory_laws.py",
        "predict/forecast/test_memory_twins.py",
        "predict/forecast/test_rank_memory.py",
        "observe/recording/callbacks",
        # whole tables of measurements and models fitted to them
        "measure/fit/test_calibrate.py",
        "measure/evaluate/test_evaluate.py",
        "measure/tables/test_run_table.py",
        "observe/history",
        "studies",
        "training",
        # commands that start others, compile or measure; pages and examples
        "surfaces/cli/test_advise_command.py",
        "surfaces/cli/test_command_line.py",
        "surfaces/cli/test_ascii_streams.py",
        "surfaces/cli/test_bench_command.py",
        "surfaces/cli/test_catalogues_command.py",
        "surfaces/cli/test_columns.py",
        "surfaces/cli/test_config.py",
        "surfaces/cli/test_diff_command.py",
        "surfaces/cli/test_evaluate_command.py",
        "surfaces/cli/test_fit_command.py",
        "surfaces/cli/test_guide.py",
        "surfaces/cli/test_handover_options.py",
        "surfaces/cli/test_history_command.py",
        "surfaces/cli/test_mistakes.py",
        "surfaces/cli/test_schedule_command.py",
        "surfaces/cli/test_schedule_run_command.py",
        "surfaces/cli/test_script.py",
        "decide/diff",
        "surfaces/integrations",
        "schedule/test_compiling.py",
        "schedule/test_policies.py",
        "observe/logs/test_event_files.py",
        "test_api.py",
        "surfaces/test_charts.py",
        "test_ci_recipes.py",
        "test_examples.py",
        "base/test_child_processes.py",
        "test_notebook.py",
        "test_own_model_page.py",
        "test_packaging.py",
        "test_recording.py",
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
    """Answers that tell the time tell the same one, nobody's own prices count, and workers share the cores in peace."""
    # Threads of small matrices mostly wait for each other: eight times the processor time where two workers train.
    # Libraries read these when they are imported, which is later.
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    # A shell starts background processes with Ctrl-C ignored, and programs that tests interrupt would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["EPOCHCAST_NOW"] = "2026-11-17T09:00"
    os.environ["EPOCHCAST_SPOOL"] = "off"
    os.environ["EPOCHCAST_PRICES"] = str(SNAPSHOTS / "no such folder")


@cache
def _marks(path: Path) -> list[str]:
    """The marks that a file has by its place."""
    return [mark for mark, places in MARKED.items() if any(path.is_relative_to(HERE / place) for place in places)]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file that `-m "not slow and not …"` leaves out is not imported either."""
    expression = config.option.markexpr
    if not re.fullmatch(r"not \w+( and not \w+)*", expression):
        return None
    return True if set(expression.split()) & set(_marks(collection_path)) else None


def _place_in_line(path: Path) -> int:
    """Files that wait for servers and engines first, slow ones next: the others fill the cores while these wait."""
    marks = _marks(path)
    return min([list(MARKED).index(mark) for mark in marks], default=len(MARKED))


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _place_in_line(item.path))
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


@pytest.fixture
def restored_operators(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Operators that a test registers are gone after it."""
    from epochcast.describe.graph import op_kinds, op_registry

    monkeypatch.delenv(op_registry.OPERATORS_VARIABLE, raising=False)
    tables = (op_kinds.KIND_CLASSES, op_registry._BY_TARGET)
    copies = [dict(table) for table in tables]
    yield
    for table, copy in zip(tables, copies, strict=True):
        table.clear()
        table.update(copy)
