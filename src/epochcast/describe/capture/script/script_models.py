"""Which expressions of a script make a model: calls of its own classes and functions, and of the frameworks'.

Net(784, 10).to(device)                  a class of the script, moved
DistributedDataParallel(model)           what it wraps
models.__dict__[args.arch]()             torchvision's, by the default of --arch
keras.Sequential([...])                  Keras's
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from epochcast.describe.capture.script.script_names import PYTORCH, Imports, framework_of_call, published_reference

Literal = int | float | str | bool

# Methods of a model that give the model back.
_CHAINED = ("to", "cuda", "cpu", "eval", "train", "half", "float", "double", "bfloat16", "requires_grad_", "apply")
# Arguments by which the functions of timm, torchvision and torch.hub take the name of a network.
_NAME_ARGUMENTS = ("model_name", "name", "model")
_WRAPPERS = (
    "torch.compile",
    "torch.jit.script",
    "torch.nn.DataParallel",
    "torch.nn.parallel.DataParallel",
    "torch.nn.parallel.DistributedDataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel",
)


@dataclass(frozen=True)
class ModelSource:
    """Where a model of the script comes from; `call` is the call that makes it, if there is one.

    `sources` are the script's classes and functions that it comes from, `reference` is the published network.
    """

    framework: str
    call: ast.Call | None = None
    sources: frozenset[str] = frozenset()
    reference: str | None = None


Bindings = Mapping[str, ModelSource]


@dataclass
class ScriptNames:
    """The meaning of a script's names; `classes` and `functions` grow while it is read."""

    imports: Imports
    constants: Mapping[str, Literal] = field(default_factory=dict)
    options: Mapping[str, Literal] = field(default_factory=dict)
    """Defaults of the script's own command line, by the name they have in Python."""
    classes: dict[str, str] = field(default_factory=dict)
    functions: dict[str, ModelSource] = field(default_factory=dict)

    def value(self, expression: ast.expr | None) -> Literal | None:
        """A literal, a constant of the script, or the default of one of its options."""
        match expression:
            case ast.Constant(value=int() | float() | str() as value):
                return value
            case ast.Name(id=name):
                return self.constants.get(name)
            case ast.Attribute(value=ast.Name(), attr=name):
                return self.options.get(name)
            case _:
                return None

    def text(self, expression: ast.expr | None) -> str | None:
        """The same where it is a text."""
        value = self.value(expression)
        return value if isinstance(value, str) else None

    def model_of(self, expression: ast.expr | None, bound: Bindings) -> ModelSource | None:
        """The model an expression makes; `bound` are the variables that hold one."""
        match expression:
            case ast.Name(id=name):
                return bound.get(name)
            case ast.Tuple(elts=[first, _]):  # a model and its example inputs
                return self.model_of(first, bound)
            case ast.IfExp(body=body, orelse=other):
                return self.model_of(body, bound) or self.model_of(other, bound)
            case ast.NamedExpr(value=value):
                return self.model_of(value, bound)
            case ast.Call():
                return self._called_local(expression, bound) or self._called_import(expression, bound)
            case _:
                return None

    def _called_local(self, call: ast.Call, bound: Bindings) -> ModelSource | None:
        """A call of a class or a function of the script."""
        match call.func:
            case ast.Name(id=name) if name in self.classes:
                return ModelSource(self.classes[name], call, frozenset({name}))
            case ast.Name(id=name) if name in self.functions:
                inner = self.functions[name]
                return ModelSource(inner.framework, call, inner.sources | {name}, inner.reference)
            case ast.Attribute(value=ast.Name(id=name)) if name in self.classes:  # Net.load_from_checkpoint(…)
                return ModelSource(self.classes[name], call, frozenset({name}))
            case ast.Attribute(value=value, attr=name) if name in _CHAINED and (model := self.model_of(value, bound)):
                return model
            case ast.Subscript(value=ast.Attribute(value=place, attr="__dict__"), slice=key):
                return self._from_torchvision(place, key, call)
            case ast.Call(func=ast.Name(id="getattr"), args=[place, key, *_]):
                return self._from_torchvision(place, key, call)
            case _:
                return None

    def _called_import(self, call: ast.Call, bound: Bindings) -> ModelSource | None:
        """A call of something that the script imports."""
        dotted = self.imports.dotted(call.func)
        if dotted is None:
            return None
        if dotted in _WRAPPERS:
            return self.model_of(call.args[0], bound) if call.args else None
        framework = framework_of_call(dotted)
        if framework is None:
            return None
        texts = [self.text(a) for a in [*call.args, *(k.value for k in call.keywords if k.arg in _NAME_ARGUMENTS)]]
        if dotted == "torch.hub.load":  # the repository, then the name
            repository, network = (*texts, None, None)[:2]
            return ModelSource(framework, call, reference=published_reference(dotted, network, repository))
        return ModelSource(framework, call, reference=published_reference(dotted, texts[0] if texts else None))

    def _from_torchvision(self, place: ast.expr, key: ast.expr, call: ast.Call) -> ModelSource | None:
        """models.__dict__[name]() and getattr(models, name)()."""
        dotted = self.imports.dotted(place) or ""
        if not dotted.startswith("torchvision.models"):
            return None
        name = self.text(key)
        return ModelSource(PYTORCH, call, reference=f"torchvision:{name}" if name else None)
