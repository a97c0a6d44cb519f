from collections.abc import Callable
from pathlib import Path

import pytest

from studies import __main__ as studies

Study = Callable[[str, str], None]


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """`study(name, text)`: writes studies/NAME/run.py into a folder that stands for studies/."""
    import studies as package

    monkeypatch.setattr(package, "__path__", [str(tmp_path)])
    monkeypatch.setattr(studies, "STUDIES", tmp_path)
    monkeypatch.delenv("EPOCHCAST_DATA", raising=False)

    def write(name: str, text: str) -> None:
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.py").write_text(text, encoding="utf-8")

    return write


def test_every_study_is_known() -> None:
    assert {"paleo", "coverage"} <= set(studies.names())


def test_all_that_pass_pass(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    study("made_good", "NEEDS_DATA = False\ndef main(): print('scored'); return 0\n")
    assert studies.main([]) == 0
    assert "scored" in capsys.readouterr().out


@pytest.mark.parametrize("body", ["return 1", "raise ValueError('no')"])
def test_one_that_fails_fails_all(body: str, study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"made_{body.split(maxsplit=1)[0]}"
    study(name, f"NEEDS_DATA = False\ndef main(): {body}\n")
    assert studies.main([]) == 1
    assert f"{name:20} FAILED" in capsys.readouterr().out


def test_one_without_its_measurements_is_skipped_with_the_reason(
    study: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    study("made_needy", "def main(): return 1\n")
    assert studies.main([]) == 0
    assert "EPOCHCAST_DATA does not name the folder of measurements" in capsys.readouterr().out


def test_a_long_one_is_run_only_when_named(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    study("made_long", "NEEDS_DATA = False\nBY_HAND = True\ndef main(): print('hours later')\n")
    assert studies.main([]) == 0
    assert "hours later" not in capsys.readouterr().out
    assert studies.main(["made_long"]) == 0
    assert "hours later" in capsys.readouterr().out


def test_an_unknown_study_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        studies.main(["nix"])
    assert "no study called nix; known: " in capsys.readouterr().err
