import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from tests.every import every

import epochcast
from epochcast.errors import BadInput
from epochcast.surfaces.cli import command_line as application

from .conftest import Command

COMMANDS = ("demo", "forecast", "inspect", "models", "devices", "instances", "datasets", "links", "doctor")


def test_the_version_is_the_package_s(command: Command) -> None:
    assert command("--version").out == f"epochcast {epochcast.__version__}\n"


def test_help_lists_the_commands(command: Command) -> None:
    said = command("--help")
    assert all(f"  {name} " in said.out for name in COMMANDS)


@every("name", COMMANDS)
def test_every_command_explains_itself_with_an_example(name: str, command: Command) -> None:
    ran = command(f"{name} --help")
    assert ran.code == 0
    assert "--json" in ran.out
    assert f"Example: epochcast {name}" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("frobnicate", "No such command 'frobnicate'; see: epochcast --help"),
        ("forecast resnet50 --nope", "No such option: --nope"),
        ("forecast resnet50 --device V100", "Missing option '--batch'; see: epochcast forecast --help"),
        ("forecast --device V100 --batch 64", "Missing argument"),
        ("forecast resnet50 --device V100 --batch many", "--batch: must be a whole number or auto, got 'many'"),
        ("forecast resnet50 --device V100 --batch", "--batch"),
    ],
)
def test_a_wrong_command_line_is_one_line(line: str, complaint: str, command: Command) -> None:
    ran = command(line)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert complaint in ran.err


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, encoding="utf-8", timeout=120, check=False)


def _loaded(*arguments: str) -> set[str]:
    """Modules in memory after a command, in a process of its own."""
    program = (
        "import sys; from epochcast.surfaces.cli.command_line import run; "
        "run(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    )
    return set(_python("-c", program, *arguments).stderr.split())


def test_the_package_runs_as_a_module() -> None:
    ran = _python("-m", "epochcast", "forecast", "resnet5", "--device", "V100", "--batch", "1")
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)


# Each of these takes longer to import than the help text takes to print.
def test_help_loads_nothing_heavy() -> None:
    loaded = _loaded("forecast", "--help")
    assert "epochcast.surfaces.cli.forecast_command" in loaded
    assert not loaded & {"numpy", "rich", "torch", "epochcast.api", "epochcast.surfaces.render"}


def test_json_needs_no_drawing() -> None:
    loaded = _loaded("inspect", "mnist_cnn", "--json")
    assert "numpy" in loaded
    assert not loaded & {"torch", "epochcast.surfaces.render", "keras", "onnx"}


Failing = Callable[[BaseException], None]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Failing:
    """`failing(error)`: from now on `epochcast devices` meets that error."""
    from epochcast.hardware import catalogue

    def fail(error: BaseException) -> None:
        def devices() -> None:
            raise error

        monkeypatch.setattr(catalogue, "devices", devices)

    return fail


def test_a_message_of_many_lines_is_made_one(command: Command, failing: Failing) -> None:
    failing(BadInput("first\n  second"))
    assert command("devices").err == "epochcast: first second\n"


def test_notes_follow_the_line(command: Command, failing: Failing) -> None:
    error = BadInput("the model fails")
    error.add_note('  File "net.py", line 3')
    failing(error)
    assert command("devices").err == 'epochcast: the model fails\n  File "net.py", line 3\n'


def test_a_file_that_cannot_be_written_is_named(command: Command, tmp_path: Path) -> None:
    ran = command(f"inspect mnist_cnn --save {tmp_path}/no/such/folder.json")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "folder.json" in ran.err


def test_a_system_error_is_one_line(command: Command, failing: Failing) -> None:
    failing(PermissionError(13, "Permission denied", "devices.toml"))
    ran = command("devices")
    assert (ran.code, ran.err) == (2, "epochcast: Permission denied: 'devices.toml'\n")


def test_an_interrupt_is_no_traceback(command: Command, failing: Failing) -> None:
    failing(KeyboardInterrupt())
    ran = command("devices")
    assert (ran.code, ran.out) == (130, "")
    assert "Traceback" not in ran.err


def test_a_mistake_of_ours_keeps_its_traceback(command: Command, failing: Failing) -> None:
    failing(ZeroDivisionError("ours"))
    with pytest.raises(ZeroDivisionError, match="ours"):
        command("devices")


def test_every_module_of_commands_is_registered() -> None:
    modules: ModuleType = application
    folder = Path(str(modules.__file__)).parent
    commands = {path.stem.removesuffix("_command") for path in folder.glob("*_command.py")}
    assert commands == set(application.COMMANDS)


def test_a_warning_is_one_line_without_a_place_in_our_code(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code = "import torch\ndef make():\n    return torch.nn.Linear(3, 4), torch.zeros(2, 3)\n"
    (tmp_path / "net.py").write_text(code, encoding="utf-8")
    (tmp_path / "file").touch()  # no folder to cache in
    line = [
        sys.executable,
        "-m",
        "epochcast",
        "forecast",
        f"{tmp_path}/net.py:make",
        "--device",
        "V100",
        "--batch",
        "4",
    ]
    environment = {**os.environ, "EPOCHCAST_CACHE": str(tmp_path / "file")}
    ran = subprocess.run(line, env=environment, capture_output=True, text=True, check=True)
    (warning,) = ran.stderr.splitlines()
    assert warning.startswith("epochcast: the capture is not cached: ")
