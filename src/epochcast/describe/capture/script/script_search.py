"""The models of a Python script, found by reading its syntax tree; nothing of it is run.

- a *candidate* is a class that derives from a model class of a framework, a function that returns a model, or a
  variable that holds one;
- it is *trained* if its parameters go to an optimizer or it is fitted, here or through a function that returns it;
- a class is a *part* if another model class of the script uses it or derives from it;
- it is *reachable* if `file.py:NAME` finds it: at the top of the file, not inside a function or below
  `if __name__ == "__main__":`. What the file does on import happens before it is found (`on_import.py`).

Names are followed only within the file, assignments in the order of their lines, whatever their branch.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from epochcast.describe.capture.config.setting import ConfigSettings
from epochcast.describe.capture.script.import_effects import OnImport, done_on_import
from epochcast.describe.capture.script.script_models import ModelSource, ScriptNames
from epochcast.describe.capture.script.script_names import (
    Imports,
    base_framework,
    framework_of_call,
    needs_no_arguments,
)
from epochcast.describe.capture.script.script_settings import script_settings
from epochcast.describe.capture.script.script_statements import (
    all_names,
    assigned,
    changed,
    constants,
    option_defaults,
    passed_models,
    top_definitions,
)
from epochcast.describe.capture.script.syntax_tree import (
    Definition,
    Function,
    definitions,
    expressions,
    required_arguments,
    statements,
    syntax_tree,
    too_deep,
)

MAIN_GUARD = 'if __name__ == "__main__":'
UNKNOWN_ARGUMENTS = ("...",)
"""The arguments of a class whose constructor is in another file."""

_MOST_ROUNDS = 10
"""How many levels of functions that return other functions' results are followed."""


@dataclass(frozen=True, slots=True)
class ModelCandidate:
    """A class, function or variable that is or makes a model.

    `needs` are arguments without a default, `inside` is what keeps it from being reached, `calls` are the places where
    the script makes it, `reference` is what to write for the same network as published.
    """

    name: str
    kind: str
    framework: str
    line: int
    end_line: int
    needs: tuple[str, ...] = ()
    inside: str = ""
    is_trained: bool = False
    is_part: bool = False
    reference: str | None = None
    calls: tuple[ast.Call, ...] = ()

    @property
    def is_ready(self) -> bool:
        """Whether `file.py:NAME` is a model as the file stands."""
        return not self.needs and not self.inside

    @property
    def order(self) -> tuple[bool | int, ...]:
        """Sorts the most likely first: what is trained, no part, reachable, ready; functions, classes, variables."""
        kind = ("function", "class", "variable").index(self.kind)
        return not self.is_trained, self.is_part, bool(self.inside), bool(self.needs), kind, self.line


@dataclass(frozen=True)
class Script:
    """What was found in a file.

    `candidates` are sorted, the most likely first. `checkpoints` are what Hugging Face would load, `modules` where a
    trained model is imported from, each with a line. `settings` are how it trains. `names` are all that occur in the
    file, `top` those bound at its top.
    """

    path: Path
    script_names: ScriptNames
    candidates: tuple[ModelCandidate, ...]
    on_import: tuple[OnImport, ...]
    checkpoints: Mapping[str, int]
    modules: Mapping[str, int]
    settings: tuple[ConfigSettings, ...]
    names: frozenset[str]
    top: frozenset[str]


def read_script(path: Path) -> Script:
    """What a file holds; raises if it cannot be read as Python."""
    tree = syntax_tree(path)
    try:
        return _ScriptReader(path, tree).script()
    except RecursionError:
        raise too_deep(path) from None


@dataclass
class _Bound:
    """A variable that holds a model, with the lines that make it."""

    model: ModelSource
    line: int
    end_line: int
    is_guarded: bool
    is_changed: bool = False


@dataclass
class _Scope:
    """The module, or one function: variables that hold models (`models` includes the module's), and other calls."""

    body: list[ast.stmt]
    function: Function | None = None
    is_method: bool = False
    bound: dict[str, _Bound] = field(default_factory=dict)
    models: dict[str, ModelSource] = field(default_factory=dict)
    other_calls: dict[str, ast.Call] = field(default_factory=dict)


@dataclass(frozen=True)
class _Trained:
    """Classes and functions whose models are trained, variables that hold one (by scope), modules they come from."""

    sources: frozenset[str]
    variables: frozenset[tuple[int, str]]
    modules: Mapping[str, int]


class _ScriptReader:
    """One pass after the other over a tree: classes, functions, variables, then what is trained."""

    def __init__(self, path: Path, tree: ast.Module) -> None:
        self.path, self.tree = path, tree
        self.calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        self.calls_by_name: dict[str, list[ast.Call]] = {}
        for call in self.calls:
            if isinstance(call.func, ast.Name):
                self.calls_by_name.setdefault(call.func.id, []).append(call)
        self.defined = list(definitions(tree.body))
        self.names = ScriptNames(Imports.of(tree), constants(tree), option_defaults(self.calls))
        self.needs: dict[str, tuple[str, ...]] = {}
        self.module = _Scope(tree.body)
        self.scopes = [self.module]
        for node, around in self.defined:
            if not isinstance(node, ast.ClassDef):
                self.scopes.append(_Scope(node.body, node, bool(around) and isinstance(around[-1], ast.ClassDef)))

    def script(self) -> Script:
        """Everything that was read from the file."""
        self._read_classes()
        self._read_functions()
        trained = self._trained()
        candidates = [*self._classes(trained), *self._functions(trained), *self._variables(trained)]
        return Script(
            path=self.path,
            script_names=self.names,
            candidates=tuple(sorted(candidates, key=lambda candidate: candidate.order)),
            on_import=done_on_import(self.tree, self.names, self.module.models),
            checkpoints=self._checkpoints(),
            modules=trained.modules,
            settings=script_settings(self.path),
            names=frozenset(all_names(self.tree)),
            top=frozenset({*self.names.imports.meanings, *top_definitions(self.tree)}),
        )

    # ---- what the names mean --------------------------------------------------------------------

    def _read_classes(self) -> None:
        """Classes that derive from a model, or from another such class above them."""
        for node, _ in self.defined:
            if isinstance(node, ast.ClassDef):
                self._read_class(node)

    def _read_class(self, node: ast.ClassDef) -> None:
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in self.names.classes and base.id != node.name:
                framework, inherited = self.names.classes[base.id], self.needs[base.id]
            else:
                dotted = self.names.imports.dotted(base) or ""
                of_base = base_framework(dotted)
                if of_base is None:
                    continue
                framework, inherited = of_base, () if needs_no_arguments(dotted) else UNKNOWN_ARGUMENTS
            constructor = next((s for s in node.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)
            needs = inherited if constructor is None else required_arguments(constructor, is_method=True)
            self.names.classes.setdefault(node.name, framework)
            self.needs.setdefault(node.name, needs)
            return

    def _read_functions(self) -> None:
        """Variables that hold a model and functions that return one, until no more are found."""
        for _ in range(_MOST_ROUNDS):
            before = len(self.names.functions)
            for scope in self.scopes:
                self._bind(scope)
                if isinstance(scope.function, ast.FunctionDef) and not scope.is_method:
                    model = self._returned(scope, scope.function)
                    if model is not None:
                        self.names.functions.setdefault(scope.function.name, model)
            if len(self.names.functions) == before:
                return

    def _returned(self, scope: _Scope, function: ast.FunctionDef) -> ModelSource | None:
        values = [s.value for s, _ in statements(scope.body) if isinstance(s, ast.Return) and s.value is not None]
        for value in values:
            model = self.names.model_of(value, scope.models)
            if model is not None:
                return model
        if function.returns is None or all(self._is_layer(value) for value in values):
            return None
        if isinstance(function.returns, ast.Name) and function.returns.id in self.names.classes:
            return ModelSource(self.names.classes[function.returns.id], sources=frozenset({function.returns.id}))
        framework = base_framework(self.names.imports.dotted(function.returns) or "")
        return None if framework is None else ModelSource(framework)

    def _is_layer(self, value: ast.expr) -> bool:
        """A layer or loss of torch.nn, which `-> nn.Module` does not make a model."""
        return isinstance(value, ast.Call) and (self.names.imports.dotted(value.func) or "").startswith("torch.nn.")

    def _bind(self, scope: _Scope) -> None:
        """Variables of a scope that hold a model, with the lines that still change it."""
        if scope is not self.module:
            scope.models = {**self.module.models, **scope.models}
        for statement, is_guarded in statements(scope.body):
            end_line = statement.end_lineno or statement.lineno
            for target, value in assigned(statement):
                name = target.id if isinstance(target, ast.Name) else ""
                if not name or name in scope.bound:
                    continue
                model = self.names.model_of(value, scope.models)
                if model is not None:
                    scope.bound[name] = _Bound(model, statement.lineno, end_line, is_guarded)
                    scope.models[name] = model
                elif isinstance(value, ast.Call):
                    scope.other_calls.setdefault(name, value)
            again = scope.bound.get(changed(statement) or "")
            if again is not None:
                again.is_changed = True
                again.end_line = max(again.end_line, end_line)

    def _trained(self) -> _Trained:
        """What is passed to an optimizer, a trainer or `fit`."""
        sources: set[str] = set()
        variables: set[tuple[int, str]] = set()
        modules: dict[str, int] = {}
        for place, scope in enumerate(self.scopes):
            for statement, _ in statements(scope.body):
                for target in (t for e in expressions(statement) for t in passed_models(e)):
                    model = self.names.model_of(target, scope.models)
                    name = target.id if isinstance(target, ast.Name) else ""
                    if model is not None:
                        sources |= model.sources
                        variables.add((place if name in scope.bound else 0, name))
                    elif name in scope.other_calls:
                        call = scope.other_calls[name]
                        module = (self.names.imports.dotted(call.func) or "").rpartition(".")[0]
                        if module:
                            modules.setdefault(module, call.lineno)
        return _Trained(frozenset(sources), frozenset(variables), modules)

    # ---- candidates -----------------------------------------------------------------------------

    def _classes(self, trained: _Trained) -> Iterator[ModelCandidate]:
        models = [(n, a) for n, a in self.defined if isinstance(n, ast.ClassDef) and n.name in self.names.classes]
        used: set[str] = set()
        for node, _ in models:
            used |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id != node.name}
        for node, around in models:
            yield ModelCandidate(
                name=".".join(n.name for n in (*around, node)),
                kind="class",
                framework=self.names.classes[node.name],
                line=node.lineno,
                end_line=node.end_lineno or node.lineno,
                needs=self.needs[node.name],
                inside=_inside(around),
                is_trained=node.name in trained.sources,
                is_part=node.name in used,
                calls=tuple(self.calls_by_name.get(node.name, ())),
            )

    def _functions(self, trained: _Trained) -> Iterator[ModelCandidate]:
        for node, around in self.defined:
            is_method = bool(around) and isinstance(around[-1], ast.ClassDef)
            if not isinstance(node, ast.FunctionDef) or is_method or node.name not in self.names.functions:
                continue
            model = self.names.functions[node.name]
            yield ModelCandidate(
                name=".".join(n.name for n in (*around, node)),
                kind="function",
                framework=model.framework,
                line=node.lineno,
                end_line=node.end_lineno or node.lineno,
                needs=required_arguments(node),
                inside=_inside(around),
                is_trained=bool(trained.sources & {node.name, *model.sources}),
                reference=model.reference,
                calls=tuple(self.calls_by_name.get(node.name, ())),
            )

    def _variables(self, trained: _Trained) -> Iterator[ModelCandidate]:
        for place, scope in enumerate(self.scopes):
            if scope.is_method or (scope.function is not None and scope.function.name in self.names.functions):
                continue
            for name, bound in scope.bound.items():
                guard = MAIN_GUARD if bound.is_guarded else ""
                yield ModelCandidate(
                    name=name,
                    kind="variable",
                    framework=bound.model.framework,
                    line=bound.line,
                    end_line=bound.end_line,
                    inside=f"{scope.function.name}()" if scope.function is not None else guard,
                    is_trained=(place, name) in trained.variables,
                    reference=bound.model.reference,
                    calls=() if bound.is_changed or bound.model.call is None else (bound.model.call,),
                )

    # ---- what else the script says --------------------------------------------------------------

    def _checkpoints(self) -> dict[str, int]:
        """Names given to from_pretrained of a model or configuration; tokenizers need no forecast."""
        lines: dict[str, int] = {}
        for call in self.calls:
            dotted = self.names.imports.dotted(call.func) or ""
            owner = dotted.removesuffix(".from_pretrained")
            if owner == dotted or not (owner.endswith("Config") or framework_of_call(dotted)):
                continue
            name_arguments = [k.value for k in call.keywords if k.arg == "pretrained_model_name_or_path"]
            name = self.names.text((*call.args, *name_arguments, None)[0])
            if dotted.startswith("transformers.") and name:
                lines.setdefault(name, call.lineno)
        return lines


def _inside(around: tuple[Definition, ...]) -> str:
    """The innermost function around a definition; a class around it does not matter."""
    functions = [node for node in around if not isinstance(node, ast.ClassDef)]
    return f"{functions[-1].name}()" if functions else ""
