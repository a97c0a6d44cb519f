"""A small repository with a job, and sides made by hand."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from epochcast.decide.diff.diff_side import LayerSeconds, Side
from epochcast.interval import Interval
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.step_parts import StepParts

JOBS = """\
[defaults]
device = "A100"

[[job]]
name = "small"
model = "net.toml"
batch = 64
samples = 50000
epochs = 10

[[job]]
name = "large"
model = "net.toml"
batch = 256
samples = 50000
epochs = 10
"""
CONV = '[[layers]]\nname = "{name}"\ntype = "conv"\nchannels = {channels}\nkernel = 3\npadding = 1\n'
HEAD = '[[layers]]\ntype = "flatten"\n[[layers]]\nname = "fc"\ntype = "linear"\nfeatures = 10\n'


def network(*channels: int) -> str:
    """A spec of convolutions in a row."""
    layers = [CONV.format(name=f"conv{place}", channels=each) for place, each in enumerate(channels, 1)]
    return "\n".join(['name = "net"\ninput = [3, 32, 32]\nloss = "cross_entropy"\n', *layers, HEAD])


def git(folder: Path, *arguments: str) -> str:
    """What a git command prints."""
    own = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *own, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a repository on `main` with one commit, two jobs and a network of two convolutions."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "epochcast.toml").write_text(JOBS)
    (folder / "net.toml").write_text(network(32, 32))
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    monkeypatch.chdir(folder)
    return folder


def side(layers: Mapping[str, tuple[float, str]], *, host: float = 0.0, **options: Any) -> Side:
    """A side whose layers have these seconds and signatures, one kernel each, and whose host is waited for."""
    seconds = sum(each for each, _ in layers.values())
    parts = StepParts(seconds, 0.0, 0.0, 0.0, 0.0, host)
    total = seconds + host
    forecast = Forecast("net", "A100", Interval(0.7 * total, total, 1.4 * total), step_parts=parts, **options)
    kernels: dict[str, float] = {}
    for each, signature in layers.values():
        kernels[signature] = kernels.get(signature, 0.0) + each
    found = tuple(LayerSeconds(name, each, signature) for name, (each, signature) in layers.items())
    return Side("made", forecast, found, kernels, True)
