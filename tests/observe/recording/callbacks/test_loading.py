"""Callbacks load their framework, and only theirs."""

import subprocess
import sys

import pytest

from epochcast import callbacks
from epochcast.errors import MissingExtra

FRAMEWORKS = {"keras", "torch", "lightning", "pytorch_lightning", "transformers", "tensorflow"}


def test_naming_the_package_loads_no_framework() -> None:
    home = "epochcast.observe.recording.callbacks"
    program = f"import sys, {home}.lightning_callback, {home}.keras_callback\nprint(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert not FRAMEWORKS & set(ended.stdout.split())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("KerasTracking", "this needs keras; .*'.\\[keras\\]'"),
        ("LightningTracking", "this needs lightning; .*'.\\[lightning\\]'"),
        ("TrainerTracking", "this needs transformers; .*'.\\[hf\\]'"),
    ],
)
def test_a_framework_that_is_absent_is_named(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=message):
        callbacks._based(name)


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'JaxTracking'"):
        callbacks.JaxTracking  # type: ignore[attr-defined]  # noqa: B018
