import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from epochcast.describe.capture.torch.factory import named_object
from epochcast.errors import BadInput

from .conftest import Command

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "your-script.md"

SCRIPT = """\
import argparse

import torch
from torch import nn
from torchvision import models


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()


class Net(nn.Module):
    def __init__(self, width, classes=10):
        super().__init__()
        self.block = Block(width)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()
    model = Net(args.width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


if __name__ == "__main__":
    main()
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


@pytest.mark.usefixtures("script")
def test_a_script_is_answered_with_the_line_to_type_next(command: Command) -> None:
    ran = command("forecast train.py --device V100 --batch 64")
    assert (ran.code, ran.out) == (2, "")
    assert (
        ran.err
        == """\
epochcast: train.py is a script, and a forecast needs the function that makes its model
found in it, without running it:
  line 13  class Net (PyTorch), needs width, trained here
  line 24  variable model (PyTorch), inside main(), trained here
  line  8  class Block (PyTorch), needs width, a part of other classes
it also says: batch 64 (line 22), optimizer sgd (line 25)
so add a function that makes the model and does not train it:
    def make_model():
        return Net(128)  # as in line 24
and type:
    epochcast forecast train.py:make_model --device V100 --batch 64
"""
    )


def test_a_script_with_a_factory_is_one_line_away(script: Path, command: Command) -> None:
    script.write_text(f"{SCRIPT}\ndef build(classes=10):\n    return Net(3, classes)\n")
    ran = command("inspect --json train.py")
    assert ran.err.endswith("so type:\n    epochcast inspect --json train.py:build\n")


def test_a_published_network_needs_nothing_of_the_script(script: Path, command: Command) -> None:
    script.write_text("from torchvision import models\nnet = models.resnet50(num_classes=10)\n")
    assert command("inspect train.py").err.splitlines()[-4:] == [
        "the published network does not need the script; type:",
        "    epochcast inspect torchvision:resnet50",
        "or type:",
        "    epochcast inspect train.py:net --input 3x224x224",
    ]


FINE_TUNING = """
import argparse, timm, torch
from torchvision import transforms

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=96)
    args = parser.parse_args()
    transform = transforms.Compose([transforms.RandomResizedCrop(args.size), transforms.ToTensor()])
    model = timm.create_model("resnet18", pretrained=True, num_classes=7)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
def test_the_lines_that_are_printed_work_as_printed(script: Path, command: Command) -> None:
    if find_spec("timm") is None:
        pytest.skip("timm is not installed")
    script.write_text(FINE_TUNING)
    told = command("forecast train.py").err.splitlines()
    added = [line.removeprefix("    ") for line in told if line.startswith(("    def ", "        return "))]
    assert added[1].startswith("    return timm.create_model('resnet18', pretrained=False, num_classes=7)")
    published, own = (line.strip() for line in told if line.startswith("    epochcast "))
    assert published == "epochcast forecast timm:resnet18 --config train.py --input 3x96x96 --device A100 --batch 32"
    assert own == "epochcast forecast train.py:make_model --input 3x96x96 --device A100 --batch 32"
    script.write_text("\n".join([FINE_TUNING.partition("if __name__")[0], *added, ""]))
    ran = command(own.removeprefix("epochcast "))
    assert (ran.code, "train.py:make_model on A100" in ran.out) == (0, True), ran.err


@pytest.mark.usefixtures("script")
def test_a_misspelt_factory_is_put_right_in_the_command(command: Command) -> None:
    ran = command("inspect train.py:nett")
    assert ran.err.startswith("epochcast: train.py has no 'nett'\n")
    assert ran.err.endswith("    epochcast inspect train.py:make_model\n")


def test_the_command_is_quoted_as_a_shell_wants_it(script: Path, command: Command) -> None:
    script.rename(script.with_name("a;b.py"))
    assert "    epochcast inspect 'a;b.py:make_model'\n" in command("inspect a;b.py").err


@pytest.mark.parametrize(("name", "content"), [("train.py", b"def f(:"), ("train.py", b"\xff"), ("run.ipynb", b"{}")])
def test_what_cannot_be_read_is_one_line(name: str, content: bytes, script: Path, command: Command) -> None:
    script.with_name(name).write_bytes(content)
    ran = command(f"forecast {name} --device V100 --batch 64")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)


def test_a_script_that_exits_on_import_is_an_error_like_any_other(script: Path) -> None:
    script.write_text("import sys\nsys.exit(2)\n")
    with pytest.raises(BadInput, match=r"importing train\.py ends the program \(SystemExit: 2\)"):
        named_object("train.py:main")


def test_the_page_shows_what_is_printed(script: Path, command: Command) -> None:
    """Each block of Python is the script of the commands that follow it."""
    shown = 0
    for language, body in re.findall(
        r"^```(python|text)\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    ):
        if language == "python":
            script.write_text(body)
        else:
            line, _, printed = body.partition("\n")
            assert command(line.removeprefix("$ epochcast ")).err == printed
            shown += 1
    assert shown >= 3
