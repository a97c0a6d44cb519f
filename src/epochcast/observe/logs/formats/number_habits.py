"""What the words of a log mean is seen from how its numbers go on.

A counter beside an epoch either starts anew with every epoch or counts the steps of the whole run; a number called
`time` is that of a step, of the steps since the last report, or of the whole run so far. Loops that people write
themselves do each of these under the same names.
"""

from dataclasses import dataclass

from epochcast.observe.logs.formats.sighting import Sighting

# A constant time above this beside a counter that moves by many steps is that of all of them, not of one.
LONG_STEP_SECONDS = 5.0
MANY_STEPS = 10

# Reports with a growing time after which it is believed to be that of the run.
GROWING_REPORTS = 2


@dataclass
class Counter:
    """Places counts of epochs and steps: the first change of epoch says whether steps start anew."""

    first_epoch: int | None = None
    epoch: int | None = None
    value: float | None = None
    longest: float = 0.0
    starts_anew: bool | None = None

    def place(self, sighting: Sighting, epoch: float | None, value: float, of: float | None, is_batch: bool) -> None:
        """Say in the sighting where the run stands; `is_batch` where the words speak of an epoch's batches."""
        if epoch is None:
            sighting.step, sighting.total = value, of
            return
        sighting.epoch = index = self.epochs_before(epoch)
        self._watch(index, value)
        if self.starts_anew or (self.starts_anew is None and (is_batch or of is not None)):
            sighting.batch, sighting.batches = value, of or (self.longest or None if index else None)
        else:
            sighting.step, sighting.total = value, of

    def epochs_before(self, epoch: float) -> int:
        """Epochs that were finished before this one, be they counted from 0 or from 1."""
        if self.first_epoch is None or epoch < 1:
            self.first_epoch = int(min(epoch, 1))
        return max(int(epoch) - self.first_epoch, 0)

    def _watch(self, index: int, value: float) -> None:
        if self.epoch is not None and self.value is not None and index > self.epoch:
            if value <= self.value:
                self.starts_anew = True
            elif self.starts_anew is None:
                self.starts_anew = False
        if index == 0 or not self.starts_anew:
            self.longest = max(self.longest, self.value or 0.0, value if index == self.epoch else 0.0)
        self.epoch, self.value = index, value


@dataclass
class Timer:
    """Places a number that is just called time."""

    last_seconds: float | None = None
    last_step: float | None = None
    grown: int = 0
    is_elapsed: bool | None = None

    def place(self, sighting: Sighting, seconds: float) -> None:
        """Say in the sighting what it is: the run's time where it only grows, else that of a step or of a report's."""
        step = sighting.step if sighting.step is not None else sighting.batch
        before, self.last_seconds = self.last_seconds, seconds
        steps = None if step is None or self.last_step is None else step - self.last_step
        self.last_step = step
        if before is not None and steps and steps > 0:
            self.grown = self.grown + 1 if seconds > before else 0
            if seconds < before:
                self.is_elapsed = False
            elif self.is_elapsed is None and self.grown >= GROWING_REPORTS and seconds > 1.2 * before:
                self.is_elapsed = True
        if self.is_elapsed:
            sighting.elapsed_seconds = seconds
        elif seconds > LONG_STEP_SECONDS and steps is not None and steps >= MANY_STEPS:
            sighting.interval_seconds = seconds
        else:
            sighting.step_seconds = seconds
