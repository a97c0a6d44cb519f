"""Node types that are named after a machine of the catalogue: its device, its GPUs and its price are filled in."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from epochcast.errors import BadInput, EpochcastError
from epochcast.hardware.instance import Instance
from epochcast.hardware.machines import find_instance
from epochcast.schedule import row_fields as fields


@dataclass(frozen=True)
class KnownNodeTypes:
    """A document whose node types say everything themselves, and what was read elsewhere."""

    document: Mapping[str, Any]
    notes: tuple[str, ...]


def with_instances(document: Mapping[str, Any], today: date) -> KnownNodeTypes:
    """A document with its node types filled in. `spot` asks for the spot price."""
    rows = document.get("node_types")
    if not isinstance(rows, list):
        return KnownNodeTypes(document, ())
    filled, notes = [], []
    for place, row in enumerate(rows, 1):
        if not isinstance(row, dict) or ("instance" not in row and "spot" not in row):
            filled.append(row)
            continue
        what = f"node type {row.get('name', row.get('instance', place))!r}"
        is_spot = fields.flag(row, "spot", what, False)
        try:
            machine = find_instance(fields.text(row, "instance", what))
        except EpochcastError as error:
            raise BadInput(f"{what}: {error}") from None
        said = {key: value for key, value in row.items() if key != "spot"}
        filled.append({**_of(machine, is_spot, row, what), **said})
        if "dollars_per_hour" not in row and not row.get("in_house") and machine.is_stale(today):
            notes.append(f"the price of {machine.name} was read on {machine.priced_on}")
    return KnownNodeTypes({**document, "node_types": filled}, tuple(notes))


def _of(machine: Instance, is_spot: bool, row: Mapping[str, Any], what: str) -> dict[str, Any]:
    """What the catalogue says; a machine in the house has no price of the catalogue."""
    told: dict[str, Any] = {"name": machine.name, "device": machine.device, "gpus": machine.gpus}
    if row.get("in_house") or "dollars_per_hour" in row:
        return told
    price = machine.spot_dollars_per_hour if is_spot else machine.dollars_per_hour
    if price is None:
        raise BadInput(f"{what}: the catalogue has no spot price of {machine.name}; give dollars_per_hour")
    return {**told, "dollars_per_hour": price}
