from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.measure.fit.machines import collective_rows, op_rows, step_rows

from epochcast.measure.bench.measurements import Appender

Command = Callable[[str], Any]


@pytest.fixture
def measurements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EPOCHCAST_PROFILES", str(tmp_path / "profiles"))
    path = tmp_path / "here.jsonl"
    with Appender(path) as out:
        for row in [*op_rows(40), *collective_rows()]:
            out.append(row)
    return path


def test_forecasts_for_the_local_device_use_what_was_fitted(command: Command, measurements: Path) -> None:
    before = command("forecast mnist_cnn --device local --batch 8 --json").json
    assert before["answered_by"] == {"analytic": pytest.approx(1.0)}
    assert any("`epochcast fit" in warning for warning in before["warnings"])
    ran = command(f"fit {measurements} --out {measurements.parent / 'p.json'} --json")
    assert (ran.code, ran.json["ops"], ran.json["collectives"], len(ran.json["written"])) == (0, 40, 4, 2)
    after = command("forecast mnist_cnn --device local --batch 8 --json").json
    assert after["answered_by"] == {"local": pytest.approx(1.0)}
    assert after["step_parts"]["host"] < 1e-6
    assert not any("`epochcast fit" in warning for warning in after["warnings"])


def test_a_profile_can_be_named(command: Command, measurements: Path) -> None:
    profile = measurements.parent / "p.json"
    assert command(f"fit {measurements} --out {profile} --no-save --json").json["written"] == [str(profile)]
    ran = command(f"forecast mnist_cnn --device local --batch 8 --profile {profile} --json")
    assert ran.json["answered_by"] == {"local": pytest.approx(1.0)}
    ran = command(f"forecast mnist_cnn --device V100 --batch 8 --profile {profile}")
    assert ran.code == 2
    assert "the forecast is for V100" in ran.err


def test_two_processes_exchange_over_the_measured_link(command: Command, measurements: Path) -> None:
    command(f"fit {measurements}")
    ran = command("forecast mnist_cnn --device local --batch 8 --gpus 2 --json")
    # 97 KB of gradients over 1 GB/s and 50 µs a message; nothing is hidden where processors do both.
    assert 2e-4 < ran.json["step_parts"]["exposed_comm"] < 5e-3


def test_a_file_cut_inside_a_row_is_fitted_up_to_there(command: Command, measurements: Path) -> None:
    measurements.write_bytes(measurements.read_bytes()[:-20])
    ran = command(f"fit {measurements} --json")
    assert (ran.code, ran.json["collectives"]) == (0, 3)
    assert "has an incomplete last row" in ran.err


def test_the_table_says_what_was_learnt_and_where_it_is(command: Command, measurements: Path) -> None:
    ran = command(f"fit {measurements}")
    for words in ("op class", "Gflop/s", "ops left out: median error", "link: 50 µs and 1.00 GB/s", "written:"):
        assert words in ran.out


def test_a_measured_step_runs_no_code_unless_it_is_allowed(
    command: Command, measurements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows as the bench writes them, but for the name of the model; the steps of a network are fitted beside them."""
    monkeypatch.chdir(measurements.parent)
    code = "from torch import nn\nopen('ran', 'w').close()\ndef factory():\n    return nn.Linear(8, 8)\n"
    Path("evil.py").write_text(code, encoding="utf-8")
    good = step_rows(("mnist_cnn",))
    evil = [replace(good[0], key=name, question={**good[0].question, "model": name}) for name in CODE]
    with Appender(measurements) as out:
        for row in [*evil, *good]:
            out.append(row)
    ran = command(f"fit {measurements} --no-save --out p.json --json")
    assert (ran.code, ran.json["steps"]) == (0, 2)
    assert sum("would run Python code" in reason for reason in ran.json["unused"]) == len(CODE)
    assert not Path("ran").exists()
    ran = command(f"fit {measurements} --no-save --out p.json --json --allow-code")
    assert ran.code == 0
    assert Path("ran").exists()


CODE = ("evil.py:factory", "./evil.py:factory", "evil:factory")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("absent.jsonl", "epochcast: no measurement file 'absent.jsonl'\n"),
        ("absent.jsonl --no-save", "epochcast: --no-save without --out would write nothing\n"),
    ],
)
def test_bad_input_is_one_line(command: Command, arguments: str, message: str) -> None:
    ran = command(f"fit {arguments}")
    assert (ran.code, ran.err) == (2, message)
