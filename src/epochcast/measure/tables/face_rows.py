"""Rows of face recognition: what a table says of the head, whose identities decide as much as the network.

Identities are in the note of a row, such as "WebFace600K 618K classes, class head split over the GPUs (partial FC √)".
Partial FC scores a tenth of them (An et al. 2022, whose default that is); a cross is the whole head.
"""

import re

from epochcast.describe.capture.model_reference import FACES
from epochcast.describe.capture.zoo.convnets import FACES as NETWORKS
from epochcast.measure.tables.row_errors import UnknownNetworkSize

_CLASSES = re.compile(r"(?P<count>[\d.]+) ?(?P<unit>K|M|Millions?) classes")
_UNITS = {"K": 1e3, "M": 1e6}
_PARTIAL = re.compile(r"partial FC (?P<fraction>√|[\d.]+)")
_USUAL_FRACTION = "0.1"


def face_reference(model: str, note: str, gpus: int) -> str | None:
    """The network with its head split over the GPUs; None where the model is no network for faces."""
    if model not in NETWORKS:
        return None
    match = _CLASSES.search(note)
    if match is None:
        raise UnknownNetworkSize(f"{model}: the row does not say how many classes its head has")
    classes = round(float(match["count"]) * _UNITS[match["unit"][0]])
    partial = _PARTIAL.search(note)
    fraction = partial["fraction"].replace("√", _USUAL_FRACTION) if partial else "1"
    return f"{FACES}:{model},classes={classes},ranks={gpus},sampled={fraction}"
