"""What single statements and calls of a script say: assignments, changes, options of its command line, names."""

import ast
from collections.abc import Iterator

from epochcast.describe.capture.script.script_models import Literal
from epochcast.describe.capture.script.syntax_tree import statements


def passed_models(expression: ast.expr) -> Iterator[ast.expr]:
    """model of model.parameters(), model.fit(…), trainer.fit(model) and Trainer(model=model)."""
    if not isinstance(expression, ast.Call):
        return
    match expression.func:
        case ast.Attribute(value=value, attr="parameters" | "named_parameters" | "compile"):
            yield value
        case ast.Attribute(value=value, attr="fit" | "fit_generator"):
            yield value
            yield from expression.args[:1]
    yield from (keyword.value for keyword in expression.keywords if keyword.arg == "model")


def assigned(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Pairs of target and value, those of `a, b = f(), g()` one by one."""
    match statement:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                match target, value:
                    case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
                        yield from zip(names, values, strict=True)
                    case _:
                        yield target, value
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield target, value


def changed(statement: ast.stmt) -> str | None:
    """The variable that model.add(…) or model.fc = … changes."""
    match statement:
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="add" | "add_module" | "append"))
        ):
            return name
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript() as target]):
            inner: ast.expr = target
            while isinstance(inner, ast.Attribute | ast.Subscript):
                inner = inner.value
            return inner.id if isinstance(inner, ast.Name) else None
        case _:
            return None


def constants(tree: ast.Module) -> dict[str, Literal]:
    """Names that hold a literal at the top of the file; of several values the first."""
    values: dict[str, Literal] = {}
    for statement, _ in statements(tree.body):
        for target, value in assigned(statement):
            if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, Literal):
                values.setdefault(target.id, value.value)
    return values


def option(call: ast.Call) -> tuple[str, ast.expr] | None:
    """Name and default of parser.add_argument("--batch-size", default=64); a switch is off unless it says otherwise."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"):
        return None
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    flags = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    longest = next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else "")
    dest = keywords.get("dest")
    name = dest.value if isinstance(dest, ast.Constant) and isinstance(dest.value, str) else longest
    action = getattr(keywords.get("action"), "value", None)
    default = keywords.get("default", _SWITCHES.get(action) if isinstance(action, str) else None)
    return None if default is None else (name.lstrip("-").replace("-", "_"), default)


_SWITCHES = {"store_true": ast.Constant(False), "store_false": ast.Constant(True)}


def option_defaults(calls: list[ast.Call]) -> dict[str, Literal]:
    """The literals among these defaults by name; of several the first."""
    defaults: dict[str, Literal] = {}
    for name, default in filter(None, map(option, calls)):
        if isinstance(default, ast.Constant) and isinstance(default.value, Literal):
            defaults.setdefault(name, default.value)
    return defaults


def top_definitions(tree: ast.Module) -> Iterator[str]:
    """Functions and classes at the top of a file, those below the guard left out."""
    return (s.name for s, guarded in statements(tree.body) if hasattr(s, "name") and not guarded)


def all_names(tree: ast.Module) -> Iterator[str]:
    """Every name and text of a file: what is not among them cannot be found in it."""
    for node in ast.walk(tree):
        for name in ("id", "name", "asname", "attr", "arg", "value"):
            word = getattr(node, name, None)
            if isinstance(word, str):
                yield word
                yield word.partition(".")[0]
