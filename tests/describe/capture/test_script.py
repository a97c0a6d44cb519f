from pathlib import Path
from textwrap import dedent

import pytest

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.capture.script import NeedsFactory, Script, read_script, script_without_factory
from epochcast.describe.capture.script.syntax_tree import MOST_BYTES
from epochcast.errors import BadInput

IMAGENET = """
    import argparse
    import torch
    import torch.nn as nn
    import torchvision.models as models

    parser = argparse.ArgumentParser()
    parser.add_argument("-a", "--arch", metavar="ARCH", default="resnet18")
    parser.add_argument("-b", "--batch-size", default=256, type=int)
    parser.add_argument("--epochs", default=90, type=int)

    def main():
        args = parser.parse_args()
        main_worker(args)

    def main_worker(args):
        if args.pretrained:
            model = models.__dict__[args.arch](pretrained=True)
        else:
            model = models.__dict__[args.arch]()
        model = torch.nn.parallel.DistributedDataParallel(model.cuda())
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        loss = criterion(model(x), y)
        loss.backward()

    if __name__ == "__main__":
        main()
"""

MNIST = """
    import torch, torch.nn as nn
    import torch.optim as optim

    class Net(nn.Module):
        def __init__(self):
            super(Net, self).__init__()
            self.fc = nn.Linear(784, 10)

    def train(model, loader, optimizer):
        loss.backward()

    def main():
        model = Net().to("cuda")
        optimizer = optim.Adadelta(model.parameters(), lr=1.0)
        train(model, loader, optimizer)

    if __name__ == "__main__":
        main()
"""

LIGHTNING = """
    import lightning as L
    from torch import nn

    class Encoder(nn.Module):
        def __init__(self, size=64):
            super().__init__()

    class LitAutoEncoder(L.LightningModule):
        def __init__(self, lr=1e-3):
            super().__init__()
            self.encoder = Encoder()

        def configure_optimizers(self):
            return Adam(self.parameters())

    if __name__ == "__main__":
        trainer = L.Trainer(max_epochs=5)
        trainer.fit(LitAutoEncoder(), data)
"""

KERAS_SEQUENTIAL = """
    from tensorflow import keras
    from tensorflow.keras import layers

    model = keras.Sequential()
    model.add(layers.Conv2D(32, 3))
    model.add(layers.Dense(10))
    model.compile(loss="categorical_crossentropy", optimizer="adam")
    model.fit(x_train, y_train, batch_size=128, epochs=15)
"""

KERAS_FUNCTIONAL = """
    from keras import Input, Model, layers

    def build(width=32):
        inputs = Input((28, 28, 1))
        outputs = layers.Dense(width)(inputs)
        return Model(inputs=inputs, outputs=outputs)

    if __name__ == "__main__":
        net = build()
        net.compile("adam")
        net.fit(x, y)
"""

KERAS_SUBCLASS = """
    import tensorflow as tf

    class MyModel(tf.keras.Model):
        def __init__(self):
            super().__init__()
"""

TRAINER = """
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments

    def main():
        tokenizer = AutoTokenizer.from_pretrained("some-tokenizer")
        config = AutoConfig.from_pretrained("bert-base-uncased", num_labels=2)
        model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased", config=config)
        args = TrainingArguments("out", per_device_train_batch_size=32, num_train_epochs=3)
        trainer = Trainer(model=model, args=args)
        trainer.train()

    if __name__ == "__main__":
        main()
"""

GAN = """
    import itertools
    import torch.nn as nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()

    class Generator(nn.Module):
        def __init__(self, nz=100):
            super().__init__()
            self.block = Block()

    class Discriminator(nn.Module):
        def __init__(self):
            super().__init__()

    def main():
        netG, netD = Generator().to(device), Discriminator().to(device)
        optimizerD = optim.Adam(netD.parameters())
        optimizerG = optim.Adam(netG.parameters())
"""

REQUIRED = """
    import torch.nn as nn
    HIDDEN = 256

    class MLP(nn.Module):
        def __init__(self, inputs, hidden, *, classes, dropout=0.1):
            super().__init__()

    class DiceLoss(nn.Module):
        def forward(self, a, b):
            return a

    if __name__ == "__main__":
        sizes = load()
        model = MLP(784, HIDDEN, classes=10)
        SGD(model.parameters())
"""

ARGPARSE = """
    import argparse
    from torch.nn import Module

    class Base(Module):
        def __init__(self, width):
            super().__init__()

    class Wide(Base):
        pass

    def get_args():
        parser = argparse.ArgumentParser()
        parser.add_argument("--hidden-size", type=int, default=512)
        return parser.parse_args()

    def main():
        opt = get_args()
        net = Wide(opt.hidden_size)
        Adam(net.parameters())
"""

ONLY_FUNCTIONS = """
    import torchvision
    import torch.nn as nn

    def make_loss() -> nn.Module:
        return nn.CrossEntropyLoss()

    def inner(classes):
        net = torchvision.models.resnet50(weights=None)
        net.fc = nn.Linear(2048, classes)
        return net

    def outer():
        return inner(10).eval()

    def annotated(config) -> nn.Module:
        return REGISTRY[config]()

    def outermost():
        def nested():
            return nn.Sequential(nn.Linear(1, 1))
        return 3
"""

TIMM = """
    import timm
    model = timm.create_model("vit_base_patch16_224", pretrained=True)
    for x, y in loader:
        loss(model(x), y).backward()
"""

UNSEEN_BASE = """
    from transformers import BertPreTrainedModel

    class Tagger(BertPreTrainedModel):
        pass
"""

STAR = """
    from torch.nn import *

    class Net(Module):
        def __init__(self):
            super().__init__()
"""

UNGUARDED_MAIN = """
    import torch.nn as nn
    class Net(nn.Module):
        pass
    def main():
        loss.backward()
    main()
"""

MODULE_LEVEL_ARGUMENTS = """
    import argparse
    import torch.nn as nn
    parser = argparse.ArgumentParser()
    args = parser.parse_args()
    model = nn.Sequential(nn.Linear(3, 3))
"""

NO_MODEL = """
    import numpy as np
    def add(a, b):
        return a + b
"""


def read(folder: Path, text: str) -> Script:
    path = folder / "train.py"
    path.write_text(dedent(text), encoding="utf-8")
    return read_script(path)


def answer(folder: Path, text: str) -> NeedsFactory:
    read(folder, text)
    return script_without_factory(str(folder / "train.py"))


@pytest.mark.parametrize(
    ("imports", "call", "written"),
    [
        ("import timm", "timm.create_model('vit', True)", "timm.create_model('vit', False)"),
        ("from torchvision import models", "models.resnet18(True)", "models.resnet18(False)"),
        (
            "from torchvision import models",
            "models.resnet18(weights=models.ResNet18_Weights.DEFAULT)",
            "models.resnet18(weights=None)",
        ),
        ("from torchvision.models import resnet18", "resnet18(pretrained=True)", "resnet18(pretrained=False)"),
        ("import keras", "keras.applications.ResNet50()", "keras.applications.ResNet50(weights=None)"),
        (
            "import keras",
            "keras.applications.ResNet50(weights='imagenet')",
            "keras.applications.ResNet50(weights=None)",
        ),
    ],
)
def test_the_printed_factory_fetches_no_weights(imports: str, call: str, written: str, tmp_path: Path) -> None:
    text = f"""
    {imports}
    def main():
        model = {call}
        model.fit(x, y)
        loss(model(x), y).backward()
    if __name__ == "__main__":
        main()
    """
    lines = [line.strip() for line in answer(tmp_path, text).__notes__]
    assert any(line.startswith(f"return {written}  #") for line in lines), lines


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224)])", (3, 224, 224)),
        ("transforms.RandomResizedCrop(size=(64, 48))", (3, 64, 48)),
        ("transforms.Resize((64, 48)), transforms.Grayscale()", (1, 64, 48)),
        ("transforms.Resize(256)", None),
        ("datasets.MNIST('data')", (1, 28, 28)),
        ("datasets.CIFAR10('data'), transforms.RandomCrop(32, padding=4)", (3, 32, 32)),
    ],
)
def test_transforms_and_data_sets_say_the_size_of_images(
    text: str, shape: tuple[int, ...] | None, tmp_path: Path
) -> None:
    whole = f"""
    import torch
    from torchvision import datasets, transforms
    class Net(torch.nn.Module):
        pass
    def main():
        data = {text}
        loss(Net()(x), y).backward()
    """
    assert answer(tmp_path, whole).input_shape == shape


@pytest.mark.parametrize(
    ("text", "best", "instead"),
    [
        (IMAGENET, "model", ["torchvision:resnet18", "train.py:make_model"]),
        (MNIST, "Net", ["train.py:Net"]),
        (LIGHTNING, "LitAutoEncoder", ["train.py:LitAutoEncoder"]),
        (KERAS_SEQUENTIAL, "model", ["train.py:model", "model.keras"]),
        (KERAS_FUNCTIONAL, "build", ["train.py:build"]),
        (KERAS_SUBCLASS, "MyModel", ["train.py:MyModel"]),
        (TRAINER, "model", ["bert-base-uncased", "train.py:make_model"]),
        (GAN, "Generator", ["train.py:Generator", "train.py:Discriminator"]),
        (REQUIRED, "MLP", ["train.py:make_model"]),
        (ARGPARSE, "Wide", ["train.py:make_model"]),
        (ONLY_FUNCTIONS, "outer", ["torchvision:resnet50", "train.py:outer"]),
        (TIMM, "model", ["timm:vit_base_patch16_224", "train.py:model"]),
        (UNSEEN_BASE, "Tagger", ["train.py:make_model"]),
        (STAR, "Net", ["train.py:Net"]),
        (UNGUARDED_MAIN, "Net", ["train.py:Net"]),
        (MODULE_LEVEL_ARGUMENTS, "model", ["train.py:model"]),
    ],
)
def test_a_script_is_told_what_to_write_next(tmp_path: Path, text: str, best: str, instead: list[str]) -> None:
    told = answer(tmp_path, text)
    assert told.candidates[0].name == best
    assert [reference.removeprefix(f"{tmp_path}/") for reference in told.instead] == instead
    notes = [note.strip() for note in told.__notes__]
    assert all(reference in notes for reference in told.instead)


@pytest.mark.parametrize(
    ("text", "framework"),
    [(MNIST, "PyTorch"), (LIGHTNING, "Lightning"), (KERAS_SUBCLASS, "Keras"), (UNSEEN_BASE, "Hugging Face")],
)
def test_a_candidate_knows_its_framework(tmp_path: Path, text: str, framework: str) -> None:
    assert read(tmp_path, text).candidates[0].framework == framework


@pytest.mark.parametrize(
    "base",
    [
        "import torch\nclass Net(torch.nn.Module): pass",
        "from torch import nn as layers\nclass Net(layers.Module): pass",
        "import torch.nn\nclass Net(torch.nn.Sequential): pass",
        "import pytorch_lightning as pl\nclass Net(pl.LightningModule): pass",
        "from lightning.pytorch import LightningModule\nclass Net(LightningModule): pass",
        "import keras\nclass Net(keras.Model): pass",
        "from tensorflow.keras.models import Model as M\nclass Net(M): pass",
        "try:\n    from keras import Sequential\nexcept ImportError:\n    pass\nclass Net(Sequential): pass",
        "from torch import nn\nif True:\n    class Base(nn.Module): pass\nclass Net(Base): pass",
    ],
)
def test_a_model_is_known_by_what_it_derives_from(tmp_path: Path, base: str) -> None:
    assert "Net" in {candidate.name for candidate in read(tmp_path, base).candidates if candidate.is_ready}


@pytest.mark.parametrize(
    "other",
    [
        "from torch.optim import SGD as Module\nclass Net(Module): pass",
        "from torch import nn\ncriterion = nn.CrossEntropyLoss()",
        "import keras\nlayer = keras.layers.Dense(10)",
        "from torch import nn\nweight = nn.Parameter(x)",
        "import torch\nclass Data(torch.utils.data.Dataset): pass",
        "from transformers import BertConfig\nconfig = BertConfig()",
    ],
)
def test_what_is_no_model_is_left_out(tmp_path: Path, other: str) -> None:
    assert read(tmp_path, other).candidates == ()


def test_parts_come_after_the_whole_and_losses_after_what_is_trained(tmp_path: Path) -> None:
    assert [c.name for c in read(tmp_path, GAN).candidates if c.kind == "class"] == [
        "Generator",
        "Discriminator",
        "Block",
    ]
    assert [c.name for c in read(tmp_path, REQUIRED).candidates] == ["MLP", "model", "DiceLoss"]


def test_arguments_without_a_default_are_named(tmp_path: Path) -> None:
    assert read(tmp_path, REQUIRED).candidates[0].needs == ("inputs", "hidden", "classes")
    assert read(tmp_path, ARGPARSE).candidates[0].needs == ("width",)  # the base's constructor


def test_a_factory_is_written_as_the_script_makes_its_model(tmp_path: Path) -> None:
    assert "        return MLP(784, 256, classes=10)  # as in line 15" in answer(tmp_path, REQUIRED).__notes__
    assert "        return Wide(512)  # as in line 19" in answer(tmp_path, ARGPARSE).__notes__


def test_a_factory_has_dots_for_what_is_not_known(tmp_path: Path) -> None:
    text = REQUIRED.replace("MLP(784", "MLP(sizes[0]")
    assert any("return MLP(inputs=..., hidden=..., classes=...)" in note for note in answer(tmp_path, text).__notes__)


def test_a_factory_takes_a_name_the_script_does_not_have(tmp_path: Path) -> None:
    told = answer(tmp_path, REQUIRED + "    make_model = None\n")
    assert told.instead[0].endswith("train.py:make_the_model")


@pytest.mark.parametrize(
    ("text", "does"),
    [
        (KERAS_SEQUENTIAL, "trains (line 9: model.fit(…))"),
        (TIMM, "trains (line 5: loss(model(x), y).backward())"),
        (UNGUARDED_MAIN, "trains (line 7: main())"),
        (MODULE_LEVEL_ARGUMENTS, "reads the command line (line 5: parser.parse_args())"),
    ],
)
def test_what_a_script_does_on_import_must_go_below_the_guard(tmp_path: Path, text: str, does: str) -> None:
    notes = answer(tmp_path, text).__notes__
    place = next(i for i, note in enumerate(notes) if f"train.py {does} as soon as it is imported" in note)
    assert notes[place + 1] == '    if __name__ == "__main__":'


@pytest.mark.parametrize("text", [IMAGENET, MNIST, LIGHTNING, KERAS_FUNCTIONAL, TRAINER, ARGPARSE])
def test_a_script_with_a_guard_does_nothing_on_import(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text).on_import == ()


def test_batch_epochs_and_optimizer_are_read_where_they_are_plain(tmp_path: Path) -> None:
    (settings,) = read(tmp_path, IMAGENET).settings
    assert {s.option: (s.value, s.key) for s in settings.settings} == {
        "batch": (256, "line 9"),
        "epochs": (90, "line 10"),
        "optimizer": ("sgd", "line 23"),
    }


def test_a_checkpoint_is_mentioned_and_a_tokenizer_is_not(tmp_path: Path) -> None:
    assert read(tmp_path, TRAINER).checkpoints == {"bert-base-uncased": 6}


def test_a_model_from_a_file_beside_it_is_looked_for_there(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text("")
    text = "from nets import GPT\nmodel = GPT(12)\noptimizer = AdamW(model.parameters())\n"
    assert answer(tmp_path, text).instead == (str(tmp_path / "nets.py"),)


@pytest.mark.parametrize("text", ["", NO_MODEL])
def test_a_script_without_a_model_is_told_what_was_looked_for(tmp_path: Path, text: str) -> None:
    told = answer(tmp_path, text)
    assert told.__notes__[0].startswith("no model was found in it: looked for classes that derive from nn.Module")
    assert "    def make_model():" in told.__notes__
    assert told.instead == (f"{tmp_path}/train.py:make_model",)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"def f(:\n", r"^train\.py, line 1: invalid syntax$"),
        (b"x = 1\n  y = 2\n", r"^train\.py, line 2: unexpected indent$"),
        (b"x = '\xff'", r"^train\.py is not UTF-8 \(byte 5\)"),
        (b"x = 1\0", r"^train\.py has null bytes"),
        (b"x = " + b"-" * 100_000 + b"1", r"^train\.py is nested too deeply to be read$"),
        (b"x = a" + b".b()" * 20_000, r"^train\.py is nested too deeply to be read$"),
        (b"#" * (MOST_BYTES + 1), r"^train\.py is larger than 1 MiB"),
    ],
)
def test_a_file_that_is_no_script_is_refused_in_one_line(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=complaint) as refused:
        find_model(path)
    assert not hasattr(refused.value, "__notes__")


def test_a_byte_order_mark_is_no_hindrance(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(b"\xef\xbb\xbf" + dedent(MNIST).encode())
    assert read_script(path).candidates[0].name == "Net"


def test_a_script_that_is_not_there_is_named() -> None:
    with pytest.raises(BadInput, match=r"there is no file 'missing\.py'"):
        find_model("missing.py")


def test_a_notebook_is_told_to_become_a_script() -> None:
    with pytest.raises(BadInput, match=r"^train\.ipynb is a notebook; export it as a script first"):
        find_model("somewhere/train.ipynb")


def test_a_script_is_not_read_where_code_is_not_allowed(tmp_path: Path) -> None:
    read(tmp_path, MNIST)
    with pytest.raises(BadInput, match="would run Python code, which is not allowed here"):
        find_model(tmp_path / "train.py", allow_code=False)


# A file that leaves a mark where it is run.
MARKING = "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\n"


def test_a_name_that_is_not_in_the_file_is_answered_without_running_it(tmp_path: Path) -> None:
    read(tmp_path, MARKING + dedent(MNIST))
    with pytest.raises(NeedsFactory, match=r"^train\.py has no 'Nett'") as refused:
        find_model(f"{tmp_path}/train.py:Nett")
    assert refused.value.reference == f"{tmp_path}/train.py:Nett"
    assert refused.value.instead == (f"{tmp_path}/train.py:Net",)
    assert not (tmp_path / "train.ran").exists()


def test_the_nearest_name_comes_first(tmp_path: Path) -> None:
    read(tmp_path, GAN)
    with pytest.raises(NeedsFactory) as refused:
        find_model(f"{tmp_path}/train.py:Discriminater")
    assert refused.value.candidates[0].name == "Discriminator"


def test_a_script_is_never_run(tmp_path: Path) -> None:
    answer(tmp_path, MARKING + dedent(MNIST))
    assert not (tmp_path / "train.ran").exists()


@pytest.mark.parametrize("text", [MARKING + "globals()['hid' + 'den'] = 3\n", "from other import *\n", "def f(:\n"])
def test_a_file_that_may_have_the_name_is_left_to_whoever_runs_it(tmp_path: Path, text: str) -> None:
    from epochcast.describe.capture.script import name_not_in_script

    (tmp_path / "train.py").write_text(text)
    assert name_not_in_script(f"{tmp_path}/train.py:hidden") is None


def test_what_another_factory_of_the_file_does_says_nothing_of_the_one_that_is_asked_for(tmp_path: Path) -> None:
    from epochcast.describe.capture.script.script_settings import script_settings

    file = tmp_path / "models.py"
    file.write_text(
        "import torch\nfrom torch import nn\n"
        "def plain():\n    return nn.Linear(2, 2)\n"
        "def fast():\n    return torch.compile(nn.Linear(2, 2))\n"
        "def train():\n    torch.optim.AdamW(plain().parameters())\n"
    )
    said = {s.option: s.value for one in script_settings(file, "plain") for s in one.settings}
    assert said == {"optimizer": "adamw"}
    said = {s.option: s.value for one in script_settings(file, "fast") for s in one.settings}
    assert said == {"optimizer": "adamw", "compile": "inductor"}


def test_a_function_that_makes_a_lightning_module_has_the_optimizer_of_that_module(tmp_path: Path) -> None:
    from epochcast.describe.capture.script.script_settings import script_settings

    file = tmp_path / "models.py"
    file.write_text(
        "import lightning as L\nimport torch\n"
        "class One(L.LightningModule):\n    def configure_optimizers(self):\n        return torch.optim.AdamW([])\n"
        "class Two(L.LightningModule):\n    def configure_optimizers(self):\n        return torch.optim.RMSprop([])\n"
        "def two():\n    return Two(), 1\n"
    )
    said = {s.option: s.value for one in script_settings(file, "two") for s in one.settings}
    assert said == {"optimizer": "rmsprop"}
