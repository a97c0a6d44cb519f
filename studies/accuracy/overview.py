"""The table that leads the page: how far off a forecast is for a format, a class of GPU and a kind of network.

Three states of knowledge, each on steps that were left out: the device was measured (another family of networks, or
another source of measurements, was timed on it), five of its runs are given, nothing was measured on its chip. Beside
them the trivial rival: flops divided by a fixed share of the peak, the share being the best one for each format over
these very rows.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.predict.cost.roofline import peaks
from studies.accuracy.figures import Array, figure
from studies.accuracy.intervals import GivenRuns
from studies.accuracy.left_out_table import LeftOutTable
from studies.accuracy.page import pair, table
from training.examples import Example

# The GPUs people rent first.
CLASSES = ("data centre, Ampere and newer", "GeForce and RTX, Ampere and newer", "Volta and Turing", "AMD", "older")
_NEW = ("ampere", "ada", "hopper", "blackwell")
_GEFORCE = re.compile(r"RTX|GeForce")
_TRANSFORMERS = re.compile(
    r"vit|deit|swin|beit|cait|xcit|bert|gpt|opt|switch|transformer|mixer|mlp|pit_|tnt|twins|levit|crossvit|volo|coat"
)


def gpu_class(device: Device) -> str:
    """One of CLASSES."""
    if device.vendor == "AMD":
        return CLASSES[3]
    if device.generation in _NEW:
        return CLASSES[1] if _GEFORCE.search(device.name) else CLASSES[0]
    return CLASSES[2] if device.generation in ("volta", "turing") else CLASSES[4]


def network_kind(model: str) -> str:
    """Convolutions, or products: transformers and mixers."""
    return "transformers" if _TRANSFORMERS.search(model.casefold()) else "convolution nets"


def format_of(precision: str) -> str:
    """What a user asks for: mixed precision of either kind is one."""
    return "AMP, fp16, bf16" if precision.removeprefix("amp_") in ("fp16", "bf16") else precision


def rival_ratios(steps: Sequence[Example], formats: NDArray[np.str_]) -> Array:
    """predicted/measured of flops ÷ (share · peak), the share being the median of each format over all rows."""
    ratios = np.empty(len(steps))
    for place, step in enumerate(steps):
        c = step.columns
        ratios[place] = (c.flops[c.is_matrix] / peaks(c, step.device)[c.is_matrix]).sum() / step.seconds
    for name in np.unique(formats):
        ratios[formats == name] /= np.median(ratios[formats == name])
    return ratios


def overview(
    left_out: LeftOutTable, inside: Mapping[str, Array], given: Sequence[GivenRuns], rival: Array | None
) -> str:
    """The section."""
    formats = np.array([format_of(p) for p in left_out.precision])
    classes = np.array([gpu_class(find_device(str(d))) for d in left_out.device])
    kinds = np.array([network_kind(m) for m in left_out.model])
    by_device = {one.device: one for one in given}
    rows = []
    for name, of_class, kind in sorted(set(zip(formats.tolist(), classes.tolist(), kinds.tolist(), strict=True))):
        mine = (formats == name) & (classes == of_class) & (kinds == kind)
        splits = [
            figure(split, "", left_out.ratios[split][mine], inside[split][mine])
            for split in ("family", "source", "device")
        ]
        calibrated = [by_device[d] for d in np.unique(left_out.device[mine]).tolist() if d in by_device]
        five = float(np.mean([one.mape for one in calibrated])) if calibrated else None
        trivial = None if rival is None else figure("rival", "", rival[mine])
        worst = max((f.mape or 0.0) for f in splits)
        cells = [cell for f in splits for cell in (pair(f.mape, f.median_ape), _share(f.holds))]
        rows.append(
            (
                worst,
                (
                    name,
                    of_class,
                    kind,
                    int(mine.sum()),
                    *cells,
                    "–" if five is None else f"{100 * five:.0f}",
                    "–" if trivial is None else pair(trivial.mape, trivial.median_ape),
                ),
            )
        )
    head = ["format", "GPUs", "networks", "steps"]
    head += ["known, new family", "holds", "known, new source", "holds", "unseen", "holds", "five runs given", "rival"]
    text = (
        "## How far off, at a glance\n\nMAPE / median APE in percent over steps that the model had not seen, worst "
        "first, and how many of the 90 % intervals hold. *Known*: the device was measured, the family of networks or "
        "the whole source of measurements was not. *Unseen*: nothing of that chip was measured. *Five runs given*: "
        "the mean over those devices after `epochcast calibrate` with five runs, all their formats together. *Rival*: "
        "flops divided by a share of the peak, the best share for each format on these very rows.\n\n"
    )
    return text + table(head, [cells for _, cells in sorted(rows, key=lambda row: -row[0])])


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"
