"""Arguments of a call in a script as plain values, as far as they are written in it.

A value is a literal, a constant of the script, or the default of one of its options. `UNREAD` stands for any other: it
is there, and what it is only shows when the script runs.
"""

import ast
from collections.abc import Mapping
from typing import Any

from epochcast.describe.capture.script.script_models import ScriptNames

UNREAD = object()
_DEEPEST = 6


def arguments(call: ast.Call, names: ScriptNames) -> dict[str, Any]:
    """The keyword arguments of a call; `**options` are not followed."""
    return {keyword.arg: plain(keyword.value, names) for keyword in call.keywords if keyword.arg}


def readable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those that can be read."""
    return {name: value for name, value in values.items() if value is not UNREAD and value is not None}


def plain(expression: ast.expr, names: ScriptNames, depth: int = 0) -> Any:
    """The value of an expression; a call of a class as its name and arguments, as LightningCLI writes them."""
    if depth > _DEEPEST:
        return UNREAD
    match expression:
        case ast.Constant(value=None):
            return None
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [plain(item, names, depth + 1) for item in items]
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return {
                key.value: plain(value, names, depth + 1)
                for key, value in pairs
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
        case ast.Call(func=function) if (dotted := names.imports.dotted(function)) is not None:
            inner = readable({k.arg: plain(k.value, names, depth + 1) for k in expression.keywords if k.arg})
            return {"class_path": dotted, "init_args": inner}
    written = names.value(expression)
    if written is not None:
        return written
    dotted = names.imports.dotted(expression) if isinstance(expression, ast.Attribute) else None
    return UNREAD if dotted is None else dotted
