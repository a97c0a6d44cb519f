"""What the names of a script mean: its imports, and which dotted names are models of a framework.

    import torch.nn as nn           nn.Module          →  torch.nn.Module
    from tensorflow import keras    keras.Sequential   →  tensorflow.keras.Sequential
    from torchvision import models  models.resnet50    →  torchvision.models.resnet50

Imports are taken from the whole file, wherever they stand. Only names are looked at: nothing is imported.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

PYTORCH, LIGHTNING, TRANSFORMERS, KERAS = "PyTorch", "Lightning", "Hugging Face", "Keras"

_KERAS_ROOTS = ("keras", "tensorflow.keras", "tf_keras", "tensorflow.python.keras", "keras.api")
_KERAS_PLACES = ("", ".models", ".engine.training", ".engine.sequential", ".models.model", ".models.sequential")
_LIGHTNING_ROOTS = ("pytorch_lightning", "lightning", "lightning.pytorch")

# Capitalised attributes of torch.nn that are not modules.
_NO_MODULES = ("Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer")

# Bases whose own constructor takes no arguments.
_PLAIN_BASES: Mapping[str, str] = {
    **dict.fromkeys(("torch.nn.Module", "torch.nn.modules.Module", "torch.nn.modules.module.Module"), PYTORCH),
    **dict.fromkeys(("torch.nn.Sequential", "torch.nn.ModuleList", "torch.jit.ScriptModule"), PYTORCH),
    **{
        f"{root}{place}.LightningModule": LIGHTNING
        for root in _LIGHTNING_ROOTS
        for place in ("", ".core", ".core.module", ".core.lightning")
    },
    **{f"{root}{place}.Model": KERAS for root in _KERAS_ROOTS for place in _KERAS_PLACES},
    **{f"{root}{place}.Sequential": KERAS for root in _KERAS_ROOTS for place in _KERAS_PLACES},
}
# Of torch.nn, most classes are layers and losses; a call of one of these makes a whole model.
_MODEL_CLASSES = (
    "torch.nn.Sequential",
    "torch.nn.Transformer",
    "torch.nn.TransformerEncoder",
    "torch.nn.TransformerDecoder",
)


def base_framework(dotted: str) -> str | None:
    """The framework whose model a class becomes by deriving from this name; None where it does not."""
    if dotted in _PLAIN_BASES:
        return _PLAIN_BASES[dotted]
    package, _, name = dotted.rpartition(".")
    if package == "torch.nn" and name[:1].isupper() and name not in _NO_MODULES:
        return PYTORCH
    if package.startswith("torchvision.models") and name[:1].isupper():
        return PYTORCH
    if package.partition(".")[0] == "transformers" and _is_transformers_model(name):
        return TRANSFORMERS
    return None


def needs_no_arguments(dotted: str) -> bool:
    """Whether a class that derives from this name and has no constructor of its own is made without arguments."""
    return dotted in _PLAIN_BASES


def framework_of_call(dotted: str) -> str | None:
    """The framework whose model a call of this name makes; None for layers, losses and everything else."""
    package, _, name = dotted.rpartition(".")
    if dotted in _MODEL_CLASSES:
        return PYTORCH
    if package == "torch.nn":
        return None
    if dotted in ("timm.create_model", "timm.models.create_model", "torch.hub.load"):
        return PYTORCH
    if package.startswith("torchvision.models"):
        is_other = name in ("list_models", "get_weight", "get_model_weights") or name.endswith("_Weights")
        return None if is_other else PYTORCH
    if package.partition(".")[0] == "transformers":
        owner = package.rpartition(".")[2]
        is_loaded = name in ("from_pretrained", "from_config") and _is_transformers_model(owner)
        return TRANSFORMERS if is_loaded or _is_transformers_model(name) else None
    if any(package.startswith(f"{root}.applications") for root in _KERAS_ROOTS) and name[:1].isupper():
        return KERAS
    if any(dotted == f"{root}.models.{name}" for root in _KERAS_ROOTS):
        return KERAS if name in ("Model", "Sequential", "load_model", "model_from_json", "clone_model") else None
    return _PLAIN_BASES.get(dotted)


def published_reference(dotted: str, name: str | None, source: str | None = None) -> str | None:
    """What to write instead of a call of this name: torchvision:resnet50. `name` is its first text argument, `source`
    the repository of `torch.hub.load`.
    """
    package, _, function = dotted.rpartition(".")
    if dotted in ("timm.create_model", "timm.models.create_model"):
        return f"timm:{name}" if name else None
    if dotted == "torchvision.models.get_model" or (dotted == "torch.hub.load" and _is_vision(source)):
        return f"torchvision:{name}" if name else None
    if package.startswith("torchvision.models") and function.islower() and framework_of_call(dotted):
        return f"torchvision:{function}"
    return None


def _is_vision(repository: str | None) -> bool:
    return repository is not None and repository.partition(":")[0] == "pytorch/vision"


def _is_transformers_model(name: str) -> bool:
    """By the library's own scheme: BertModel, BertPreTrainedModel, BertForMaskedLM, GPT2LMHeadModel, AutoModelFor…"""
    if not name[:1].isupper() or name.endswith(("Config", "Output", "Loss")):
        return False
    return name.endswith("Model") or "ModelFor" in name or any(head in name for head in _HEADS)


_HEADS = (
    "ForMaskedLM",
    "ForCausalLM",
    "ForConditionalGeneration",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForImageClassification",
    "ForPreTraining",
    "ForMultipleChoice",
    "ForSemanticSegmentation",
    "ForObjectDetection",
    "ForCTC",
)


@dataclass(frozen=True)
class Imports:
    """The names a script imports, with what they stand for, and the packages it takes everything from."""

    meanings: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    stars: tuple[str, ...] = ()

    @classmethod
    def of(cls, tree: ast.AST) -> "Imports":
        """Every import in a syntax tree; a name imported twice keeps its first meaning."""
        meanings: dict[str, str] = {}
        lines: dict[str, int] = {}
        stars = []
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
                stars.append(node.module or "")
            for name, meaning in _bound(node):
                meanings.setdefault(name, meaning)
                lines.setdefault(name, getattr(node, "lineno", 0))
        return cls(meanings, lines, tuple(stars))

    def dotted(self, expression: ast.expr) -> str | None:
        """The whole dotted name of an expression like nn.Module; None where it is no plain name of an import."""
        parts: list[str] = []
        while isinstance(expression, ast.Attribute):
            parts.append(expression.attr)
            expression = expression.value
        if not isinstance(expression, ast.Name):
            return None
        parts.append(expression.id)
        first, *rest = reversed(parts)
        if first in self.meanings:
            return ".".join([self.meanings[first], *rest])
        for package in self.stars:
            guess = ".".join([package, first, *rest])
            if base_framework(guess) or framework_of_call(guess):
                return guess
        return None


def _bound(node: ast.AST) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Import(names=names):
            for alias in names:
                # `import a.b` binds a; `import a.b as c` binds c to a.b.
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
        case ast.ImportFrom(module=module, names=names, level=level):
            for alias in names:
                if alias.name != "*":
                    yield alias.asname or alias.name, "." * level + (f"{module}." if module else "") + alias.name
