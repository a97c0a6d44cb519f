"""Loops over time that a model runs in Python: a scan, kernel after kernel, where others run one fused kernel.

The plain version of Mamba or a hand-written RNN is captured as it is written. Whoever trains it with a fused kernel
(`mamba_ssm`) is much faster, and a forecast does not model that: it says so.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from epochcast.graph.op import Op, Phase

LEAST = 48
"""Equal ops in one module that make a loop; no layer that is written out has so many."""


def loops(ops: Iterable[Op]) -> Iterator[str]:
    """A note for the module with the longest loop, where there is one."""
    counts = Counter(
        (op.layer, op.kind, tuple(t.shape for t in op.outputs)) for op in ops if op.phase is Phase.FORWARD and op.layer
    )
    layers = {layer for (layer, _, _), count in counts.items() if count >= LEAST}
    if layers:
        (layer, _, _), count = max(counts.items(), key=lambda item: item[1])
        more = f" and {len(layers) - 1} more" if len(layers) > 1 else ""
        yield (
            f"module {layer!r}{more} runs a loop of {count} equal ops, one kernel after another: "
            "a fused kernel (a scan) would be faster and is not modelled"
        )
