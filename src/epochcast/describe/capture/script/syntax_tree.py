"""The syntax tree of a Python file that may be anything: read within bounds, never run.

Walks here recurse into definitions alone, which Python itself does not let nest deeply.
"""

import ast
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from epochcast.errors import BadInput
from epochcast.units import show_bytes

MOST_BYTES = 2**20
"""Larger files are data written as Python."""

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


def syntax_tree(path: Path) -> ast.Module:
    """The tree of a file; raises a one-line error if it cannot be read."""
    if not path.is_file():
        raise BadInput(f"there is no file {str(path)!r}")
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise BadInput(f"{path.name} is larger than {show_bytes(MOST_BYTES)}, too large for a script")
    if b"\0" in content:
        raise BadInput(f"{path.name} has null bytes, so it is not Python source")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path.name} is not UTF-8 (byte {error.start}), so it is not read as Python") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes do not matter here
            return ast.parse(text)
    except SyntaxError as error:
        raise BadInput(f"{path.name}, line {error.lineno or '?'}: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise too_deep(path) from None


def too_deep(path: Path) -> BadInput:
    """The error for a file that nests deeper than Python can follow."""
    return BadInput(f"{path.name} is nested too deeply to be read")


def statements(body: Sequence[ast.stmt]) -> Iterator[tuple[ast.stmt, bool]]:
    """Every statement of one scope in order, blocks opened, definitions not entered; with each, whether it is below
    `if __name__ == "__main__":`.
    """
    waiting = [(statement, False) for statement in reversed(body)]
    while waiting:
        statement, is_guarded = waiting.pop()
        yield statement, is_guarded
        if isinstance(statement, _DEFINITIONS):
            continue
        is_guard = isinstance(statement, ast.If) and _asks_for_main(statement.test)
        inner = [(child, is_guarded or is_guard) for child in getattr(statement, "body", ())]
        for block in [*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]:
            inner += [(child, is_guarded) for child in block.body]
        for name in ("orelse", "finalbody"):
            inner += [(child, is_guarded) for child in getattr(statement, name, ())]
        waiting += reversed(inner)


def expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """Every expression that runs with the statement itself: not those of blocks, definitions and lambdas inside it."""
    if isinstance(statement, _DEFINITIONS):
        return
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.expr):
            yield node
        waiting += [
            child
            for child in reversed(list(ast.iter_child_nodes(node)))
            if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case | ast.Lambda)
        ]


def definitions(
    body: Sequence[ast.stmt], around: tuple[Definition, ...] = ()
) -> Iterator[tuple[Definition, tuple[Definition, ...]]]:
    """Every function and class, in the order of their lines, with the definitions it stands in, the outermost first."""
    for statement, _ in statements(body):
        if isinstance(statement, _DEFINITIONS):
            yield statement, around
            yield from definitions(statement.body, (*around, statement))


def required_arguments(function: Function, *, is_method: bool = False) -> tuple[str, ...]:
    """Parameters without a default; those of a method without the first."""
    arguments = function.args
    places = [*arguments.posonlyargs, *arguments.args]
    required = places[: len(places) - len(arguments.defaults)][1 if is_method else 0 :]
    keyword_only = [
        a for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is None
    ]
    return tuple(argument.arg for argument in (*required, *keyword_only))


def _asks_for_main(test: ast.expr) -> bool:
    match test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            sides = {getattr(side, "id", getattr(side, "value", None)) for side in (left, right)}
            return sides == {"__name__", "__main__"}
        case ast.BoolOp(op=ast.And(), values=values):
            return any(_asks_for_main(value) for value in values)
        case _:
            return False
