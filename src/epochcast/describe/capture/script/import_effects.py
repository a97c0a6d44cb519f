"""What a script does as soon as it is imported, before any name in it can be used: training, or reading argv."""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten

from epochcast.describe.capture.script.script_models import Bindings, ScriptNames
from epochcast.describe.capture.script.syntax_tree import definitions, expressions, statements

TRAINS, READS_ARGUMENTS = "trains", "reads the command line"

_TRAINING_METHODS = ("backward", "fit_generator", "train_on_batch", "apply_gradients")
_LONGEST_TEXT = 60


@dataclass(frozen=True, slots=True)
class OnImport:
    """One such thing: what it does, and the line that does it."""

    does: str
    line: int
    text: str


def done_on_import(tree: ast.Module, script_names: ScriptNames, bound: Bindings) -> tuple[OnImport, ...]:
    """The first statement outside definitions and the guard of each kind; functions are followed by their names."""
    trainers = _trainers(tree, script_names)
    calls = {
        node.name: [call for statement, _ in statements(node.body) for call in _calls(statement)]
        for node, _ in definitions(tree.body)
        if not isinstance(node, ast.ClassDef)
    }
    training = _functions_that(lambda call: _trains(call, script_names, bound, trainers), calls)
    reading = _functions_that(_reads_arguments, calls)
    actions: dict[str, OnImport] = {}
    for statement, is_guarded in statements(tree.body):
        for call in () if is_guarded else _calls(statement):
            for does, is_done in (
                (TRAINS, _trains(call, script_names, bound, trainers) or not training.isdisjoint(_called_names(call))),
                (READS_ARGUMENTS, _reads_arguments(call) or not reading.isdisjoint(_called_names(call))),
            ):
                if is_done and does not in actions:
                    actions[does] = OnImport(does, call.lineno, _call_text(call))
    return tuple(sorted(actions.values(), key=lambda done: done.line))


def _calls(statement: ast.stmt) -> Iterator[ast.Call]:
    return (e for e in expressions(statement) if isinstance(e, ast.Call))


def _functions_that(does: Callable[[ast.Call], bool], calls: Mapping[str, Sequence[ast.Call]]) -> frozenset[str]:
    """Names of functions with such a call, and of those that call these."""
    names = {name for name, inner in calls.items() if any(does(call) for call in inner)}
    callers: dict[str, set[str]] = {}
    for name, inner in calls.items():
        for called in (n for call in inner for n in _called_names(call)):
            callers.setdefault(called, set()).add(name)
    waiting = list(names)
    while waiting:
        new_names = callers.get(waiting.pop(), set()) - names
        names |= new_names
        waiting += new_names
    return frozenset(names)


def _called_names(call: ast.Call) -> Iterator[str]:
    """main of main(), and of typer.run(main)."""
    return (node.id for node in (call.func, *call.args) if isinstance(node, ast.Name))


def _trains(call: ast.Call, script_names: ScriptNames, bound: Bindings, trainers: frozenset[str]) -> bool:
    match call.func:
        case ast.Attribute(attr=name) if name in _TRAINING_METHODS:
            return True
        case ast.Attribute(value=ast.Name(id=owner), attr="fit" | "train") if owner in trainers:
            return True
        case ast.Attribute(value=owner, attr="fit"):
            first = call.args[0] if call.args else None
            return script_names.model_of(owner, bound) is not None or script_names.model_of(first, bound) is not None
        case _:
            return False


def _reads_arguments(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("parse_args", "parse_args_into_dataclasses")


def _trainers(tree: ast.Module, script_names: ScriptNames) -> frozenset[str]:
    """Variables that hold a trainer of Hugging Face or Lightning: Trainer, Seq2SeqTrainer, SFTTrainer."""
    return frozenset(
        node.targets[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and (script_names.imports.dotted(node.value.func) or "").endswith("Trainer")
    )


def _call_text(call: ast.Call) -> str:
    text = shorten(ast.unparse(call.func), _LONGEST_TEXT, placeholder=" …")
    return f"{text}(…)" if call.args or call.keywords else f"{text}()"
