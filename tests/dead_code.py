"""Code in src that nothing in src uses: `python tests/dead_code.py` lists it and exits with 1 if there is any.

What only tests call is dead, too; what only `training/` or `studies/` use belongs there. Names that a library, a table
or a decorator calls are listed below.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from vulture import Vulture

from epochcast.describe.capture.zoo import ZOO

LEAST_CONFIDENCE = 60
DECORATORS = [
    "@*.register",  # functools.singledispatch
    "@*.command",  # typer
    "@*.callback",
    "@*.get",  # FastAPI
    "@*.post",
    "@*.put",
    "@*.delete",
    "@*.patch",
]
NAMES = {
    # Python, IPython and the answers' public methods
    "__getattr__", "__dir__", "_repr_html_", "to_polars", "to_pandas",
    # keras, lightning and transformers call the methods of callbacks
    "on_*", "pl_module", "batch_idx", "control", "async_safe",
    # scikit-learn's interface
    "HistoryRegressor", "set_params", "deep",
    # attributes that other libraries read
    "commenters", "whitespace_split", "use_cache", "isolation_level", "autocommit", "down_revision",
    "redirect_request", "format_options", "__class__", "__annotations__",
    "_should_skip_dynamo", "_attn_implementation_internal",
    # arguments by which torch calls our functions
    "eps", "normalized_shape", "use_pl_optimizer", "var", "rstd",
    # named by an import string in a table
    "patch_camelyon_prefix",
    # a field that the study of memory reads
    "largest_shape",
    # what users' own cost models and policies are checked with
    "check_op_cost", "check_policy",
    # what a user may do with a store
    "delete_run", "add_job",
    # what studies and trainers read of a value that is the product's
    "precision_label", "link_fraction", "artefact_seconds", "card", "clock_jumps", "lines_read",
    "doubt_of", "post_training_step",
    # building blocks for those who build graphs or feed trackers themselves
    "step_ops", "trainable_parameter_count", "add_all",
    # an argument that functions of one signature share, the other half of a table's row
    "coarsest_stage", "named_as",
    # workloads of the scheduling studies, made by name
    "talk", "read_workload",
}  # fmt: skip


def named_in_texts() -> Iterator[str]:
    """Words of strings (keys of JSON, paths to attributes) and of pages: what they name is used."""
    for path in Path("src").rglob("*"):
        if path.suffix in (".html", ".js"):
            yield from re.findall(r"\w+", path.read_text(encoding="utf-8"))
        elif path.suffix == ".py":
            yield from _named_in(ast.parse(path.read_text(encoding="utf-8")))


def _named_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if re.fullmatch(r"[\w.]+", text):
                yield from text.split(".")
            # the fields of a record are keys of its JSON, those of a request options of a command
            case ast.ClassDef(bases=bases, body=body) if any(ast.unparse(base).endswith("Record") for base in bases):
                yield from _fields(body)
            case ast.ClassDef(body=body) if any("option(" in ast.unparse(item) for item in body):
                yield from _fields(body)


def _fields(body: list[ast.stmt]) -> Iterator[str]:
    for item in body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            yield item.target.id


def main() -> int:
    """List dead code."""
    builders = {entry.function for entry in ZOO.values()}
    vulture = Vulture(ignore_names=sorted(NAMES | builders), ignore_decorators=DECORATORS)
    vulture.scavenge(["src"])
    named = set(named_in_texts())
    dead = [item for item in vulture.get_unused_code(min_confidence=LEAST_CONFIDENCE) if item.name not in named]
    for item in dead:
        print(item.get_report())
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
