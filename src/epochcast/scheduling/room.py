"""Free GPUs while a decision is made: machines of the largest type of each device, opened as needed, jobs best fit."""

from epochcast.scheduling.state import Decision, State
from epochcast.scheduling.workload import Choice


class Room:
    """What is still free beside a decision. It packs by itself; `renting` has the last word."""

    def __init__(self, state: State, decision: Decision) -> None:
        fleet = state.fleet
        self._size = {device: max(kind.gpus for kind in kinds) for device, kinds in fleet.by_device.items()}
        self._free: dict[str, list[int]] = {device: [0] * (size + 1) for device, size in self._size.items()}
        self._nodes = fleet.nodes
        self._quota = {
            device: None if any(kind.quota is None for kind in kinds) else sum(kind.quota or 0 for kind in kinds)
            for device, kinds in fleet.by_device.items()
        }
        self._opened = dict.fromkeys(fleet.by_device, 0)
        for placed in sorted(decision.values(), key=lambda placed: -placed.choice.gpus):
            if placed.alone:
                self._open(placed.choice.device, self._size[placed.choice.device])
            else:
                self.take(placed.choice)

    def take(self, choice: Choice) -> bool:
        """Take the GPUs of a choice; False, and nothing taken, where there is no room."""
        free, gpus = self._free[choice.device], choice.gpus
        for room in range(gpus, len(free)):
            if free[room]:
                free[room] -= 1
                free[room - gpus] += 1
                return True
        return gpus <= self._size[choice.device] and self._open(choice.device, gpus)

    def _open(self, device: str, gpus: int) -> bool:
        quota = self._quota[device]
        if sum(self._opened.values()) >= self._nodes or (quota is not None and self._opened[device] >= quota):
            return False
        self._opened[device] += 1
        self._free[device][self._size[device] - gpus] += 1
        return True
