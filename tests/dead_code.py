"""Code in src that nothing in src uses: `python -m tests.dead_code` lists it and exits with 1 if there is any.

What only tests call is dead, too; what only `training/` or `studies/` use belongs there. Names that a library, a table
or a decorator calls are listed below.
"""

import sys

from vulture import Vulture  # type: ignore[import-untyped]

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
    # arguments by which torch calls our functions
    "eps", "normalized_shape", "use_pl_optimizer", "var", "rstd",
    # named by an import string in a table
    "patch_camelyon_prefix",
    # a field that the study of memory reads
    "largest_shape",
    # what users' own cost models and policies are checked with
    "check_op_cost", "check_policy",
}  # fmt: skip


def main() -> int:
    """List dead code."""
    builders = {entry.function for entry in ZOO.values()}
    vulture = Vulture(ignore_names=sorted(NAMES | builders), ignore_decorators=DECORATORS)
    vulture.scavenge(["src"])
    dead = vulture.get_unused_code(min_confidence=LEAST_CONFIDENCE)
    for item in dead:
        print(item.get_report())
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
