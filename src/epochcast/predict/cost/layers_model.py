"""Seconds of one run of the single-layer benchmark: physical terms, corrected by trees, for known and unknown GPUs.

    seconds(row, setup) = base · exp(trees(features)),   base = Σ c_t(setup) · term_t(row, device)

A *setup* is a GPU with a software stack on which thousands of layers were measured; it has the coefficients c_t and
is a feature of the trees. A GPU that was not measured is costed by its *siblings*: the terms come from its own data
sheet, the efficiencies and the trees' corrections from each setup of its family (Kepler, or newer), and the result is
the median over dies. Trees never see raw times: outside their range they leave the physical terms as they are.

Written by `python -m training.train_layers`; the file holds the date, the data and its errors.
"""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcast.base.caching import remembered
from epochcast.errors import BadInput, EpochcastError
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.predict.cost.layer_terms import FEATURES, KERNEL_TERMS, TERMS, features, terms
from epochcast.predict.cost.roofline import bounds
from epochcast.predict.cost.single_layer import LayerRows, parts
from epochcast.predict.cost.tree_ensembles import Forest

Array = NDArray[np.float64]

FILE = "layer_trees.json.gz"
FORMAT = 1
# Groups of rows with an interval of their own: whether the row trains, and how long it takes.
SIZE_EDGES_SECONDS = (1e-3, 1e-2)
# A setup with fewer measured rows is not used for other GPUs.
LEAST_SIBLING_ROWS = 1000


@dataclass(frozen=True)
class Setup:
    """A GPU and a software stack, for one kind of layer. `widths` are log ratios (below, above) per group."""

    kind: str
    device: str
    generation: str
    stack: str
    place: int
    rows: int
    coefficients: Array
    widths: Mapping[str, tuple[float, float]]

    def base_seconds(self, rows: LayerRows, device: Device) -> Array:
        """Σ c_t · term_t, with the data sheet of `device`."""
        return np.asarray(terms(rows, device) @ self.coefficients)

    def part_seconds(self, rows: LayerRows, device: Device, names: tuple[str, ...]) -> Array:
        """The sum over some of the terms only."""
        places = [TERMS.index(name) for name in names]
        return np.asarray(terms(rows, device)[:, places] @ self.coefficients[places])

    def data_gradient_fraction(self, rows: LayerRows, device: Device) -> Array:
        """Which part of its kernels is the gradient of the input, which the benchmark asks of every layer."""
        bound = bounds(parts(rows)["data_gradient"], device)
        compute, traffic = (self.coefficients[TERMS.index(f"gradient_{name}")] for name in ("compute", "traffic"))
        kernels = self.part_seconds(rows, device, KERNEL_TERMS)
        return np.asarray((compute * bound.compute + traffic * bound.memory) / np.maximum(kernels, 1e-12))


@dataclass(frozen=True)
class LayerTimes:
    """Seconds per row; `answered_by` says whether the setup itself or its siblings were used."""

    low: Array
    mid: Array
    high: Array
    answered_by: str


@dataclass(frozen=True)
class LayersModel:
    """Setups and trees. `unknown_widths` are the log ratios (below, above) of GPUs that were left out, by kind."""

    setups: tuple[Setup, ...]
    forests: Mapping[str, Forest]
    unknown_widths: Mapping[str, tuple[float, float]]
    card: Mapping[str, Any]

    def setup(self, kind: str, device: Device, stack: str) -> Setup | None:
        """The setup of exactly this GPU and stack."""
        return next((s for s in self.of_kind(kind) if s.device == device.name and s.stack == stack), None)

    def siblings(self, kind: str, device: Device) -> tuple[Setup, ...]:
        """The setups used for a GPU.

        Its own setups with other stacks, else all well-measured setups of Kepler, or of newer generations.
        """
        measured = [s for s in self.of_kind(kind) if s.rows >= LEAST_SIBLING_ROWS]
        same_device = [s for s in measured if s.device == device.name]
        if same_device:
            return tuple(same_device)
        is_kepler = device.generation == "kepler"
        same_family = [s for s in measured if (s.generation == "kepler") == is_kepler]
        return tuple(same_family or measured)

    def seconds_as(self, rows: LayerRows, device: Device, setup: Setup) -> Array:
        """The seconds of `device` if its kernels behaved like those of `setup`."""
        base = setup.base_seconds(rows, device)
        inputs = features(rows, device, setup.place, setup.generation, base)
        return base * np.exp(self.forests[rows.kind].values(inputs))

    def answer(self, rows: LayerRows, device: Device, stack: str) -> LayerTimes:
        """low, mid and high of every row, by the setup or by its siblings."""
        setup = self.setup(rows.kind, device, stack)
        if setup is not None:
            mid = self.seconds_as(rows, device, setup)
            below, above = _widths(setup, rows, mid)
            return LayerTimes(mid * np.exp(below), mid, mid * np.exp(above), "layers")
        siblings = self.siblings(rows.kind, device)
        logs, dies = self.sibling_logs(rows, device, siblings), [_die(s) for s in siblings]
        # The mean per die, however many boards and stacks of it were measured; then the median over dies.
        by_die = [logs[:, [d == die for d in dies]].mean(axis=1) for die in sorted(set(dies))]
        mid = np.exp(np.median(by_die, axis=0))
        narrow, wide = self.unknown_widths[rows.kind]
        return LayerTimes(mid * np.exp(narrow), mid, mid * np.exp(wide), "layers, unseen GPU")

    def sibling_logs(self, rows: LayerRows, device: Device, siblings: tuple[Setup, ...]) -> Array:
        """log seconds of every row as each sibling would take them, one column each."""
        return np.log(np.stack([self.seconds_as(rows, device, setup) for setup in siblings], axis=1))

    def of_kind(self, kind: str) -> tuple[Setup, ...]:
        """The setups of one kind of layer."""
        return tuple(s for s in self.setups if s.kind == kind)


def size_groups(rows: LayerRows, seconds: Array) -> NDArray[np.str_]:
    """The group a row's interval is taken from: forward0 … training2."""
    size = np.digitize(seconds, SIZE_EDGES_SECONDS)
    return np.char.add(np.where(rows.trains, "training", "forward"), size.astype(str))


def _die(setup: Setup) -> tuple[str, int]:
    """Generation and multiprocessors: what two boards with one chip share."""
    return setup.generation, find_device(setup.device).compute_units


def _widths(setup: Setup, rows: LayerRows, mid: Array) -> tuple[Array, Array]:
    groups = size_groups(rows, mid)
    pairs = np.array([setup.widths.get(str(group), setup.widths["all"]) for group in groups]).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


@remembered(1)
def layers_model() -> LayersModel:
    """The shipped model."""
    path = files("epochcast.predict.cost").joinpath(FILE)
    if not path.is_file():
        raise EpochcastError(f"{FILE} is missing; write it with: python -m training.train_layers")
    return from_bytes(path.read_bytes())


def from_bytes(data: bytes) -> LayersModel:
    """What `training.layer_file.to_bytes` wrote, checked."""
    document = json.loads(gzip.decompress(data))
    if document.get("format") != FORMAT or tuple(document["terms"]) != TERMS:
        raise BadInput(f"{FILE} was written by another version; make it again with: python -m training.train_layers")
    forests = {kind: Forest.from_document(forest) for kind, forest in document["forests"].items()}
    for kind, forest in forests.items():
        if forest.features != FEATURES:
            raise BadInput(f"the trees for {kind} in {FILE} were grown on other features")
    setups = tuple(
        Setup(
            **{name: row[name] for name in ("kind", "device", "generation", "stack", "place", "rows")},
            coefficients=np.array(row["coefficients"]),
            widths={name: (pair[0], pair[1]) for name, pair in row["widths"].items()},
        )
        for row in document["setups"]
    )
    unknown = {kind: (pair[0], pair[1]) for kind, pair in document["unknown_widths"].items()}
    return LayersModel(setups, forests, unknown, document["card"])
