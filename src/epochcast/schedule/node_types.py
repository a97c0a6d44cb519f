"""Node types that are named after a machine of the catalogue: its device, its GPUs and its price are filled in."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from epochcast.errors import BadInput, EpochcastError
from epochcast.hardware.instance import Instance
from epochcast.hardware.machines import find_instance
from epochcast.schedule.queue_document import NodeTypeRow


def with_instances(rows: Sequence[NodeTypeRow], today: date) -> tuple[tuple[NodeTypeRow, ...], tuple[str, ...]]:
    """Node types that say everything themselves, and notes on prices that were read long ago."""
    filled, notes = [], []
    for place, row in enumerate(rows, 1):
        if row.instance is None:
            if row.spot:
                raise BadInput(f"node type {row.name or str(place)!r}: spot needs an instance of the catalogue")
            filled.append(row)
            continue
        label = f"node type {row.name or row.instance!r}"
        try:
            machine = find_instance(row.instance)
        except EpochcastError as error:
            raise BadInput(f"{label}: {error}") from None
        needs_price = row.dollars_per_hour is None and not row.in_house
        filled.append(
            replace(
                row,
                name=row.name or machine.name,
                device=row.device or machine.device,
                gpus=row.gpus or machine.gpus,
                dollars_per_hour=_dollars_per_hour(machine, row.spot, label) if needs_price else row.dollars_per_hour,
                spot=False,
            )
        )
        if needs_price and machine.is_stale(today):
            notes.append(f"the price of {machine.name} was read on {machine.priced_on}")
    return tuple(filled), tuple(notes)


def _dollars_per_hour(machine: Instance, is_spot: bool, label: str) -> float:
    price = machine.spot_dollars_per_hour if is_spot else machine.dollars_per_hour
    if price is None:
        raise BadInput(f"{label}: the catalogue has no spot price of {machine.name}; give dollars_per_hour")
    return price
