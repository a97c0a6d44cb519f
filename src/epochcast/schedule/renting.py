"""Which machines to rent for the GPUs that are in use.

Jobs of a device share machines, unless one is to be alone. The rule, for each device: as few machines as hold all
jobs, the fullest packed first, each of the cheapest type that holds its jobs; then, while machines are to spare, a
machine with an idle GPU is split into two if these cost less (three GPUs: a machine of two and one of one).

Moving between machines is free for a job without `restart_seconds`. One that has some, or a machine to itself, stays
where it is as long as its choice does; only if nothing else fits are all packed anew.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from epochcast.errors import BadInput
from epochcast.schedule.queue_state import Decision, QueueState, RentedMachine
from epochcast.schedule.workload_jobs import Fleet, NodeType


class DoesNotPack(BadInput):
    """The machines that may be rented do not hold what a decision wants."""


@dataclass(slots=True)
class _RentedBox:
    """A machine in the making."""

    device: str
    residents: list[tuple[str, int]]
    number: int | None = None
    kind: NodeType | None = None
    alone: bool = False
    size: int = 0
    used: int = field(init=False)

    def __post_init__(self) -> None:
        self.used = sum(gpus for _, gpus in self.residents)

    def take(self, job: str, gpus: int) -> None:
        """Put a job here."""
        self.residents.append((job, gpus))
        self.used += gpus


def rent(state: QueueState, decision: Decision) -> tuple[RentedMachine, ...]:
    """The machines for a decision; those that stay keep their number. Raises `DoesNotPack` where none will do."""
    exclusive = _exclusive_machines(state, decision)
    if exclusive is not None:
        return exclusive
    boxes = _sticky(state, decision)
    if boxes is None or not _fits(boxes, state.fleet):
        boxes = _packed(state, decision, ())
        if not _fits(boxes, state.fleet):
            raise DoesNotPack(f"{len(decision)} jobs need more machines than may be rented ({state.fleet.nodes})")
    _split(boxes, state.fleet)
    return _numbered(boxes, state)


def _exclusive_machines(state: QueueState, decision: Decision) -> tuple[RentedMachine, ...] | None:
    """The machines where every job has one to itself and there are enough: who stays, stays; None elsewhere."""
    if len(decision) > state.fleet.nodes or not all(placed.alone for placed in decision.values()):
        return None
    by_number = {machine.number: machine for machine in state.machines}
    machines, new = [], []
    for name, placed in decision.items():
        live = state.live[name]
        if live.machine is not None and live.alone and live.choice == placed.choice:
            machines.append(by_number.pop(live.machine))
        else:
            new.append((name, placed.choice))
    rented = Counter(machine.kind.name for machine in machines)
    fresh = state.next_machine_number
    for name, choice in new:
        kind = _cheapest(state.fleet, choice.device, choice.gpus, rented, exactly=True)
        if kind is None:
            return None
        rented[kind.name] += 1
        idle = min((m.number for m in by_number.values() if m.kind is kind and not m.residents), default=None)
        if idle is None:
            number, fresh = fresh, fresh + 1
        else:
            number = idle
            del by_number[idle]
        machines.append(RentedMachine(number, kind, ((name, choice.gpus),), True))
    return tuple(sorted(machines, key=attrgetter("number")))


def _sticky(state: QueueState, decision: Decision) -> list[_RentedBox] | None:
    """Boxes in which jobs that pay for moving stay; None where nobody does and all may be packed anew."""
    staying: dict[int, list[tuple[str, int]]] = {}
    for name, placed in decision.items():
        live = state.live[name]
        stays = live.choice == placed.choice and live.alone == placed.alone
        if stays and live.machine is not None and (placed.alone or live.job.restart_seconds > 0):
            staying.setdefault(live.machine, []).append((name, placed.choice.gpus))
    if not staying:
        return None
    boxes = [
        _RentedBox(
            machine.kind.device,
            staying[machine.number],
            machine.number,
            machine.kind,
            machine.is_exclusive,
            machine.kind.gpus,
        )
        for machine in state.machines
        if machine.number in staying
    ]
    return _packed(state, decision, boxes)


def _packed(state: QueueState, decision: Decision, staying: Sequence[_RentedBox]) -> list[_RentedBox]:
    """First fit, the largest jobs first, into what is free on machines that stay and then into the largest types."""
    boxes = list(staying)
    placed_already = {name for box in staying for name, _ in box.residents}
    rented = _count_by_type(boxes)
    open_boxes: dict[str, list[_RentedBox]] = {}
    for box in boxes:
        if not box.alone:
            open_boxes.setdefault(box.device, []).append(box)
    # Largest first; Python's sort keeps the order of the decision among equals.
    todo = sorted(
        ((name, placed) for name, placed in decision.items() if name not in placed_already),
        key=lambda item: -item[1].choice.gpus,
    )
    for name, placed in todo:
        device, gpus = placed.choice.device, placed.choice.gpus
        if placed.alone:
            boxes.append(_RentedBox(device, [(name, gpus)], alone=True))
            continue
        shared = open_boxes.setdefault(device, [])
        room = next((box for box in shared if box.size - box.used >= gpus), None)
        if room is None:
            room = _RentedBox(device, [], size=_largest(state.fleet, device, gpus, rented))
            boxes.append(room)
            shared.append(room)
        room.take(name, gpus)
        if room.used >= room.size:
            shared.remove(room)
    return boxes


def _largest(fleet: Fleet, device: str, gpus: int, rented: Counter[str]) -> int:
    """GPUs of the largest machine that is available, which is then rented; of a job's own size where none is."""
    for kind in reversed(fleet.by_device[device]):
        if is_available(kind, rented):
            if kind.gpus < gpus:
                break
            rented[kind.name] += 1
            return kind.gpus
    return gpus


def _fits(boxes: Sequence[_RentedBox], fleet: Fleet) -> bool:
    """Give every box its type; False where nodes or quotas do not suffice."""
    if len(boxes) > fleet.nodes:
        return False
    rented = _count_by_type(boxes)
    # The fullest first: they have the least choice.
    for box in sorted((box for box in boxes if box.kind is None), key=lambda box: -box.used):
        kind = _cheapest(fleet, box.device, box.used, rented, exactly=box.alone)
        if kind is None:
            return False
        box.kind = kind
        rented[kind.name] += 1
    return True


def _count_by_type(boxes: Iterable[_RentedBox]) -> Counter[str]:
    return Counter(box.kind.name for box in boxes if box.kind is not None)


def is_available(kind: NodeType, rented: Counter[str]) -> bool:
    """Whether another machine of a type may be rented, beside so many of every type."""
    return kind.quota is None or rented[kind.name] < kind.quota


def _cheapest(fleet: Fleet, device: str, gpus: int, rented: Counter[str], exactly: bool = False) -> NodeType | None:
    """The cheapest type that holds so many GPUs and is available; a job alone prefers a machine of its size."""
    fitting = [kind for kind in fleet.by_device[device] if kind.gpus >= gpus and is_available(kind, rented)]
    if exactly and any(kind.gpus == gpus for kind in fitting):
        fitting = [kind for kind in fitting if kind.gpus == gpus]
    return min(fitting, key=lambda kind: (kind.dollars_per_hour, kind.gpus), default=None)


def _split(boxes: list[_RentedBox], fleet: Fleet) -> None:
    """While machines are to spare, make two of a new one with idle GPUs where these cost less."""
    spare = fleet.nodes - len(boxes)
    for box in list(boxes):
        if spare < 1:
            return
        if (
            box.number is not None
            or box.alone
            or box.kind is None
            or box.used == box.kind.gpus
            or len(box.residents) < 2
        ):
            continue
        rented = _count_by_type(boxes)
        largest, others = box.residents[0], box.residents[1:]
        first = _cheapest(fleet, box.device, largest[1], rented)
        if first is None:
            continue
        rented[first.name] += 1
        second = _cheapest(fleet, box.device, sum(gpus for _, gpus in others), rented)
        if second is None or first.dollars_per_hour + second.dollars_per_hour >= box.kind.dollars_per_hour:
            continue
        box.residents, box.used, box.kind = [largest], largest[1], first
        boxes.append(_RentedBox(box.device, list(others), kind=second))
        spare -= 1


def _numbered(boxes: Sequence[_RentedBox], state: QueueState) -> tuple[RentedMachine, ...]:
    """Machines with numbers.

    A box takes that of the machine of its type on which most of its jobs are, or of an idle one. A machine on which
    nothing changes is the same object as before.
    """
    old = {machine.number: machine for machine in state.machines}
    used = {box.number for box in boxes if box.number is not None}
    fresh = state.next_machine_number
    machines = []
    for box in boxes:
        assert box.kind is not None
        if box.number is None:
            box.number = _reused_number(box, box.kind, state, old, used)
            if box.number is None:
                box.number, fresh = fresh, fresh + 1
            used.add(box.number)
        before, residents = old.get(box.number), tuple(box.residents)
        if before is not None and before.residents == residents and before.is_exclusive == box.alone:
            machines.append(before)
        else:
            machines.append(RentedMachine(box.number, box.kind, residents, box.alone))
    return tuple(sorted(machines, key=attrgetter("number")))


def _reused_number(
    box: _RentedBox, kind: NodeType, state: QueueState, old: Mapping[int, RentedMachine], used: set[int]
) -> int | None:
    """Of a machine of the type that is there already: where most of the jobs are, or an idle one."""
    numbers = [state.live[name].machine for name, _ in box.residents]
    fits = [n for n in numbers if n is not None and n not in used and n in old and old[n].kind.name == kind.name]
    if fits:
        return max(sorted(set(fits)), key=fits.count)
    idle = (n for n, m in old.items() if n not in used and not m.residents and m.kind.name == kind.name)
    return min(idle, default=None)
