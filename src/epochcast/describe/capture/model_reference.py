"""A model as users write it, taken apart: `PREFIX:NAME`, `file.py:factory`, `package.module:factory`, a file, a name.

>>> ModelReference.of("timm:resnet50").prefix, ModelReference.of("resnet50").prefix
('timm', '')
>>> ModelReference.of("nets/net.py:make").module, ModelReference.of("nets/net.py:make").factory
('nets/net.py', 'make')
>>> ModelReference.of("hf:config.json").file, ModelReference.of("torchvision:resnet18").file
('config.json', '')
"""

import re
from dataclasses import dataclass
from typing import Self

CONFIG, SIZES, KERNELBENCH, DIFFUSERS = "hf", "decoder", "kernelbench", "diffusers"
"""Prefixes of a configuration of transformers, of a language model by its sizes, of a network of that benchmark,
of a network of diffusers."""
LIBRARIES = ("timm", "torchvision")
"""Prefixes of libraries that build a network by its name."""
DETECTORS = ("mmdetection", "mmdetection_v1", "detectron2", "maskrcnn_benchmark")
"""Prefixes of a detector by the name of its configuration there."""
NNUNET, YOLO = "nnunet", "ultralytics"
"""Prefixes of a plan of nnU-Net, and of a network that the user's ultralytics builds."""
_YOLO_NAME = re.compile(r"(yolov?\d+\w*|yolov\d+-\w+|rtdetr-[lx])(-(seg|pose|obb|cls))?(\.pt|\.yaml)?")
FACES = "arcface"
"""Prefix of a network for faces with the head it is trained with."""
PREFIXES = (*LIBRARIES, CONFIG, SIZES, KERNELBENCH, FACES, DIFFUSERS, NNUNET, YOLO, *DETECTORS)
CONFIGURED = (CONFIG, DIFFUSERS)
"""Prefixes whose name may be a configuration file."""
FILE_ENDINGS = (".onnx", ".keras", ".toml", ".json", ".h5", ".pt", ".pth", ".pkl")


def is_yolo_name(name: str) -> bool:
    """Whether ultralytics knows networks by such names: yolo11n, yolov8s-seg.pt."""
    return _YOLO_NAME.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class ModelReference:
    """`prefix` is one of `PREFIXES` or empty; `name` is what follows it, or all of the text."""

    prefix: str
    name: str

    @classmethod
    def of(cls, text: str) -> Self:
        """The parts of a reference."""
        prefix, colon, name = text.partition(":")
        return cls(prefix, name) if colon and prefix in PREFIXES else cls("", text)

    def __str__(self) -> str:
        return f"{self.prefix}:{self.name}" if self.prefix else self.name

    @property
    def is_code(self) -> bool:
        """Whether it is the user's own Python, which is run to make the model."""
        is_model_file = self.name.lower().endswith(FILE_ENDINGS)
        return not self.prefix and (self.name.endswith(".py") or (":" in self.name and not is_model_file))

    @property
    def module(self) -> str:
        """The module or script of a factory; empty where no factory is named."""
        return "" if self.prefix else self.name.rpartition(":")[0]

    @property
    def factory(self) -> str:
        """The name in that module."""
        return self.name.rpartition(":")[2] if self.module else ""

    @property
    def script(self) -> str:
        """The Python file of a factory; empty where it is in a package or none is named."""
        return self.module if self.module.endswith(".py") else ""

    @property
    def file(self) -> str:
        """The file that it names, if it names one; a plain name may be one, too."""
        return self.name.partition(":")[0] if self.prefix in ("", *CONFIGURED) else ""

    def with_file(self, file: object) -> str:
        """The same reference to another file."""
        return str(type(self)(self.prefix, f"{file}{self.name[len(self.file) :]}"))
