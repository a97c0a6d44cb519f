"""Free GPUs while a decision is made: machines are opened as needed, the largest that is to be had, jobs best fit."""

from epochcast.schedule.queue_state import Decision, QueueState
from epochcast.schedule.workload_jobs import GpuChoice


class FreeGpus:
    """What is still free beside a decision. It packs by itself; `renting` has the last word."""

    def __init__(self, state: QueueState, decision: Decision) -> None:
        fleet = state.fleet
        self._nodes = fleet.nodes
        # Of every device: GPUs of a machine and how many of these may still be opened, the largest first.
        self._closed = {
            device: [[kind.gpus, fleet.nodes if kind.quota is None else kind.quota] for kind in reversed(kinds)]
            for device, kinds in fleet.by_device.items()
        }
        self._free = {device: [0] * (closed[0][0] + 1) for device, closed in self._closed.items()}
        for placed in sorted(decision.values(), key=lambda placed: -placed.choice.gpus):
            if placed.alone:
                self._open(placed.choice.device, placed.choice.gpus, alone=True)
            else:
                self.take(placed.choice)

    def take(self, choice: GpuChoice) -> bool:
        """Take the GPUs of a choice; False, and nothing taken, where there is no room."""
        free, gpus = self._free[choice.device], choice.gpus
        for room in range(gpus, len(free)):
            if free[room]:
                free[room] -= 1
                free[room - gpus] += 1
                return True
        return self._open(choice.device, gpus)

    def _open(self, device: str, gpus: int, alone: bool = False) -> bool:
        if self._nodes < 1:
            return False
        closed = self._closed[device]
        for kind in reversed(closed) if alone else closed:
            if kind[0] >= gpus and kind[1] > 0:
                kind[1] -= 1
                self._nodes -= 1
                self._free[device][0 if alone else kind[0] - gpus] += 1
                return True
        return False
