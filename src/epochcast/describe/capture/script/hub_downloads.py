"""Whether a factory would fetch weights from the Hub, read from its syntax tree before anything is imported.

    def make():
        return AutoModel.from_pretrained("bert-base-uncased")     refused at once, unless the id is in the cache

Libraries take seconds to import before they try. Only what runs in any case is looked at: not what is below an `if`, in
a loop, or in functions that are called.
"""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from epochcast.describe.capture.no_network import WantsNetwork
from epochcast.describe.capture.script.script_names import Imports
from epochcast.describe.capture.script.script_statements import constants
from epochcast.describe.capture.script.syntax_tree import syntax_tree
from epochcast.errors import BadInput

_LIBRARIES = ("transformers", "diffusers", "sentence_transformers")
_HUB = "huggingface.co"
_PLAIN = (ast.Expr, ast.Assign, ast.AnnAssign, ast.Return, ast.With)


def check_downloads(path: Path, name: str, model: str) -> None:
    """Raise `WantsNetwork` where a function of a file loads an id of the Hub that is not on this machine."""
    try:
        tree = syntax_tree(path)
    except BadInput:
        return  # whoever runs the file says what is wrong with it
    function = next((each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == name), None)
    if function is None:
        return
    imports, values = Imports.of(tree), constants(tree)
    for call in _calls(function):
        owner = imports.dotted(call.func) or ""
        first = call.args[0] if call.args else None
        written = values.get(first.id) if isinstance(first, ast.Name) else getattr(first, "value", None)
        is_loaded = owner.endswith(".from_pretrained") and owner.partition(".")[0] in _LIBRARIES
        if is_loaded and isinstance(written, str) and not _is_here(written):
            raise WantsNetwork(model, _HUB)


def _calls(function: ast.FunctionDef) -> Iterator[ast.Call]:
    for statement in function.body:
        if isinstance(statement, _PLAIN):
            yield from (node for node in ast.walk(statement) if isinstance(node, ast.Call))


def _is_here(written: str) -> bool:
    """Whether it is a folder, or an id in the cache of the Hub."""
    if Path(written).exists():
        return True
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    return (cache / f"models--{written.replace('/', '--')}").exists()
