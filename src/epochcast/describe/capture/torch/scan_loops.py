"""Loops over time that a model runs in Python: a scan, kernel after kernel, where others run one fused kernel.

The plain version of Mamba or a hand-written RNN is captured as it is written. Whoever trains it with a fused kernel
(`mamba_ssm`) is much faster, and a forecast does not model that: it says so.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from epochcast.describe.graph.op import Op, Phase

LEAST = 48
"""Equal ops in one module that make a loop; no layer that is written out has so many."""


def loops(ops: Iterable[Op]) -> Iterator[str]:
    """A note for the module with the longest loop, where there is one.

    What `forward` of the model itself runs is a loop only where it is most of the model's ops: the sums behind many
    layers may be written there, too.
    """
    counts = Counter((op.layer, op.kind, tuple(t.shape for t in op.outputs)) for op in ops if op.phase is Phase.FORWARD)
    equal = {key: count for key, count in counts.items() if count >= LEAST}
    if 2 * sum(count for (layer, _, _), count in equal.items() if not layer) < counts.total():
        equal = {key: count for key, count in equal.items() if key[0]}
    if equal:
        layers = {layer for layer, _, _ in equal}
        (layer, _, _), count = max(equal.items(), key=lambda item: item[1])
        more = f" and {len(layers) - 1} more" if len(layers) > 1 else ""
        where = f"module {layer!r}" if layer else "the model"
        yield (
            f"{where}{more} runs a loop of {count} equal ops, one kernel after another: "
            "a fused kernel (a scan) would be faster and is not modelled"
        )
