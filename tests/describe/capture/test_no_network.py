"""User code that wants the network, or packages that are not installed: one clear line, at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from epochcast.describe.capture.no_network import WantsNetwork
from epochcast.describe.capture.resolve import find_model
from epochcast.describe.capture.script.hub_downloads import check_downloads
from epochcast.errors import BadInput

# As on a machine without these packages: nothing finds them.
ABSENT = """
import sys
from importlib.machinery import PathFinder

class Absent(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {absent} else super().find_spec(name, path, target)

sys.meta_path = [Absent if finder is PathFinder else finder for finder in sys.meta_path]
"""
MADE = """
from epochcast.describe.capture.no_network import choose_keras_backend
from epochcast.describe.capture.torch import make_model
from epochcast.errors import EpochcastError

choose_keras_backend()
try:
    print(make_model(sys.argv[1]).graph(2).parameter_count)
except EpochcastError as error:
    print(type(error).__name__, error, *getattr(error, "__notes__", ()), sep="|")
"""


def without(absent: set[str], reference: str, home: Path) -> str:
    """What is made of a reference where packages are absent, on one line."""
    passed_on = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "KERAS_HOME": str(home), **passed_on}
    program = ABSENT.replace("{absent}", repr(absent)) + MADE
    words = [sys.executable, "-c", program, reference]
    ran = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def written(folder: Path, text: str) -> str:
    (folder / "user.py").write_text(text, encoding="utf-8")
    return f"{folder / 'user.py'}:make"


@pytest.mark.parametrize(
    "fetch", ["urllib.request.urlopen('https://weights.example/x')", "socket.create_connection(('192.0.2.1', 80))"]
)
def test_a_factory_that_downloads_is_stopped_with_one_line(fetch: str, tmp_path: Path) -> None:
    reference = written(tmp_path, f"import socket, urllib.request\ndef make():\n    return {fetch}\n")
    with pytest.raises(
        BadInput, match=r"tries to download from (weights\.example|192\.0\.2\.1); a forecast"
    ) as stopped:
        find_model(reference).graph(2)
    assert not getattr(stopped.value, "__notes__", ())


def test_weights_of_hugging_face_that_are_not_cached_are_stopped_with_one_line(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    fetch = "hf_hub_download('nobody/nothing', 'x.bin', cache_dir='/nonexistent')"
    reference = written(tmp_path, f"from huggingface_hub import hf_hub_download\ndef make():\n    return {fetch}\n")
    with pytest.raises(BadInput, match=r"tries to download from huggingface\.co") as stopped:
        find_model(reference).graph(2)
    assert not getattr(stopped.value, "__notes__", ())


def test_a_process_that_stays_offline_reaches_itself() -> None:
    program = """
import socket
from epochcast.describe.capture.no_network import WantsNetwork, stay_offline
server = socket.create_server(("127.0.0.1", 0))
stay_offline("it")
socket.create_connection(("localhost", server.getsockname()[1])).close()
socket.getaddrinfo(socket.gethostname(), 0)
try:
    socket.gethostbyname("example.com")
except WantsNetwork as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.stdout.startswith("it tries to download from example.com"), ran.stderr


KERAS = """
import keras

def make():
    return keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
"""


def test_keras_without_tensorflow_takes_an_installed_backend(tmp_path: Path) -> None:
    pytest.importorskip("keras")
    pytest.importorskip("torch")
    assert without({"tensorflow"}, written(tmp_path, KERAS), tmp_path) == "36"


@pytest.mark.parametrize(
    ("absent", "text", "extra"),
    [
        ({"torch"}, "import torch\ndef make(): return torch.nn.Linear(2, 2)\n", "torch"),
        ({"torch"}, "def make():\n    import torch\n    return torch.nn.Linear(2, 2)\n", "torch"),
        ({"timm"}, "def make():\n    import timm\n    return timm.create_model('resnet18')\n", "timm"),
        ({"tensorflow"}, "from tensorflow import keras\ndef make(): return keras.Sequential()\n", "tensorflow"),
        ({"tensorflow", "torch", "jax"}, KERAS, "tensorflow"),
    ],
)
def test_a_framework_that_is_absent_is_one_line(absent: set[str], text: str, extra: str, tmp_path: Path) -> None:
    pytest.importorskip("keras" if "keras" in text else "torch")
    told = f"this needs {extra}; in the checkout of epochcast type: pip install '.[{extra}]'"
    assert without(absent, written(tmp_path, text), tmp_path) == f"MissingExtra|{told}"


def test_a_network_of_timm_without_timm_names_the_extra_that_has_it(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    told = "this needs timm; in the checkout of epochcast type: pip install '.[timm]'"
    assert without({"timm"}, "timm:resnet18", tmp_path) == f"MissingExtra|{told}"


FROM_THE_HUB = """
from transformers import AutoModel

NAME = "somebody/unknown-network"


def make():
    return AutoModel.from_pretrained(NAME)


def perhaps(pretrained=False):
    if pretrained:
        return AutoModel.from_pretrained(NAME)
    return None


def folder():
    return AutoModel.from_pretrained(".")
"""


def test_a_factory_that_loads_from_the_hub_is_stopped_before_anything_is_imported(tmp_path: Path) -> None:
    script = tmp_path / "net.py"
    script.write_text(FROM_THE_HUB + "\nraise RuntimeError('it was imported')\n", encoding="utf-8")
    with pytest.raises(WantsNetwork, match=r"net.py:make tries to download from huggingface\.co"):
        check_downloads(script, "make", "net.py:make")
    for name in ("perhaps", "folder", "absent"):
        check_downloads(script, name, f"net.py:{name}")
