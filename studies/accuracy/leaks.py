"""What a split by name misses: relatives of a network under another label.

A family is left out by the leading word of a network's name (`run_table.family_of`). A left-out `resnet` has a
`tv_resnet34` in another fold.
Where that is so, an error says less about what was never seen than the split's name promises; so it is counted.
"""

import numpy as np
from numpy.typing import NDArray

from studies.accuracy.left_out_table import LeftOutTable

# Words that mark one architecture in names whose leading words differ: tv_resnet34, ese_vovnet39b, cs3darknet_l.
CORES = (
    "resnet",
    "resnext",
    "vovnet",
    "darknet",
    "efficientnet",
    "rexnet",
    "mobilevit",
    "botnet",
    "halonet",
    "mixer",
    "senet",
)
_SAME = {"resnext": "resnet", "senet": "resnet"}


def core_of(model: str, family: str) -> str:
    """The architecture a name contains, else its family."""
    core_name = next((core for core in CORES if core in model.casefold()), family)
    return _SAME.get(core_name, core_name)


def has_relative(table: LeftOutTable) -> NDArray[np.bool_]:
    """Whether a network of the same architecture, under another label, was trained on when a step was left out."""
    cores = np.array([core_of(m, f) for m, f in zip(table.model, table.family, strict=True)])
    folds = table.folds("family")
    several = {str(core) for core in np.unique(cores) if len(np.unique(folds[cores == core])) > 1}
    return np.array([core in several for core in cores], dtype=np.bool_)
