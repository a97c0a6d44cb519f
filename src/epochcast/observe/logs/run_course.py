"""Placing what lines say in the run: steps counted through epochs, attempts separated, one clock for all reports.

Terms: an *attempt* is one start of the job; a log may hold several. A *section* is an epoch or a progress bar with a
time of its own. Where lines have no date, the clock is the sum of what they say has passed: sections that ended, or the
time of a step times the steps since the report before. Such a clock leaves out what the log leaves out, often
validation.
"""

from dataclasses import dataclass, field

from epochcast.observe.logs.formats.sighting import Sighting
from epochcast.observe.runs.report import Phase, Report

# Lines of processes that write into one file arrive out of order by a few reports; more than that is a restart.
STRAGGLING_REPORTS = 3

# An expected rest below this, in whole seconds, says less about the time so far than the time so far itself.
COARSE_SECONDS = 20.0

# A sampled step this much slower than the one before held something else (evaluation) and stands for itself alone.
OUTLYING = 3.0


@dataclass
class LogClock:
    """Seconds since the first report, from the best time that lines have."""

    origin_seconds: float | None = None
    base_seconds: float = 0.0
    section: object = None
    section_seconds: float = 0.0
    rest_seconds: float = 0.0
    elapsed_seconds: float = 0.0
    seconds: float | None = None
    source: str | None = None
    sampled_seconds: float | None = None
    work: float = 0.0
    batch_samples: float | None = None

    def read(self, sighting: Sighting, section: object, steps: float) -> float | None:
        """The clock at this line; None where it says nothing of time. `steps` were finished since the report before."""
        if sighting.stamp_seconds is not None:
            return self._at_stamp(sighting.stamp_seconds)
        if self.source == "stamps":
            return None
        if sighting.pause_seconds is not None:
            self.base_seconds += sighting.pause_seconds
            self.seconds = self.base_seconds + self.section_seconds + self.elapsed_seconds
            return self.seconds
        if sighting.elapsed_seconds is not None:
            return self._at_elapsed(sighting.elapsed_seconds)
        in_section = self._section_seconds(sighting, section, steps)
        if in_section is not None:
            return self._in_section(in_section, section)
        return self._after(self._passed(sighting, steps))

    def start(self, stamp: float | None) -> None:
        """The clock begins with the first time stamp, be it of a heading."""
        if self.origin_seconds is None:
            self.origin_seconds = stamp

    def restart(self) -> None:
        """The times of the next attempt count on from here."""
        self.base_seconds += self.section_seconds + self.elapsed_seconds
        self.section_seconds = self.rest_seconds = self.elapsed_seconds = self.work = 0.0
        self.section = None

    def add(self, seconds: float) -> None:
        """Time that passed and that no line was read of."""
        self.base_seconds += seconds
        self.seconds = (self.seconds or 0.0) + seconds

    def _at_stamp(self, stamp: float) -> float:
        self.start(stamp)
        self.source = "stamps"
        self.seconds = stamp - (self.origin_seconds or 0.0)
        return self.seconds

    def _at_elapsed(self, elapsed: float) -> float:
        # A timer that falls back within an attempt was started again after warming up: the log's own timer rules.
        if self.source not in (None, "elapsed"):  # sections were summed before: the run's own total replaces them
            self.base_seconds = self.section_seconds = self.rest_seconds = 0.0
        self.source = "elapsed"
        self.elapsed_seconds = elapsed
        self.seconds = self.base_seconds + elapsed
        return self.seconds

    def _section_seconds(self, sighting: Sighting, section: object, steps: float) -> float | None:
        """Time in this epoch: written, or the mean step times the steps, or what an expected rest implies."""
        if sighting.section_seconds is not None:
            self.rest_seconds = 0.0
            if sighting.closes_epoch and self.work > 0 and section == self.section:
                self.batch_samples = sighting.section_seconds / self.work
            return sighting.section_seconds
        if sighting.average_seconds is not None and sighting.batch:
            if section != self.section:
                self._turn(section)
            # Steps after the last report of an epoch take as long as the others, though no line says so.
            self.rest_seconds = sighting.average_seconds * max(0.0, (sighting.batches or 0.0) - sighting.batch)
            return sighting.average_seconds * sighting.batch
        if sighting.samples_per_second:
            return self._by_throughput(sighting.samples_per_second, section, steps)
        rest, batch, batches = sighting.epoch_remaining_seconds, sighting.batch, sighting.batches
        if rest is None or not batch or not batches:
            return None
        if batch >= batches:
            return self.section_seconds if section == self.section else None
        if rest < COARSE_SECONDS and section == self.section and self.section_seconds and 0 < steps < batch:
            return self.section_seconds * batch / (batch - steps)
        implied = rest * batch / (batches - batch)
        return max(implied, self.section_seconds) if section == self.section else implied

    def _by_throughput(self, samples_per_second: float, section: object, steps: float) -> float | None:
        """Steps over samples per second; the samples of a step are known once an epoch has said how long it took."""
        if section != self.section:
            self._turn(section)
        self.work += max(steps, 0.0) / samples_per_second
        return None if self.batch_samples is None else self.work * self.batch_samples

    def _turn(self, section: object) -> None:
        self.base_seconds += self.section_seconds + self.rest_seconds
        self.section, self.section_seconds, self.rest_seconds, self.work = section, 0.0, 0.0, 0.0

    def _in_section(self, in_section: float, section: object) -> float:
        if section != self.section:
            self._turn(section)
        self.source = "sections"
        self.section_seconds = in_section
        # What an epoch took may be less than was reckoned while it ran; the clock waits rather than run back.
        self.seconds = max(self.base_seconds + in_section, self.seconds or 0.0)
        return self.seconds

    def _passed(self, sighting: Sighting, steps: float) -> float | None:
        if sighting.interval_seconds is not None:
            return sighting.interval_seconds
        if sighting.step_seconds is None or self.source == "sections":
            return None
        if not sighting.is_sampled:
            return sighting.step_seconds * max(steps, 0.0)
        usual, self.sampled_seconds = self.sampled_seconds, sighting.step_seconds
        if usual is None or sighting.step_seconds < usual * OUTLYING:
            return sighting.step_seconds * max(steps, 0.0)
        self.sampled_seconds = usual
        return sighting.step_seconds + usual * max(steps - 1, 0.0)

    def _after(self, passed: float | None) -> float | None:
        if passed is None:
            return None
        self.source = "intervals"
        self.base_seconds += passed
        self.seconds = self.base_seconds
        return self.seconds


@dataclass
class Course:
    """Turns sightings into observations, in the order of the log."""

    clock: LogClock = field(default_factory=LogClock)
    attempt: int = 0
    total: float | None = None
    epochs: float | None = None
    batches: float | None = None
    longest_epoch: float = 0.0
    epoch: int | None = None
    first_epoch: int | None = None
    step: float | None = None
    first_step: float = 0.0
    interval: float = 0.0
    has_clock: bool = False
    counts_epochs: bool = False
    rank: int | None = None
    named_attempt: int | None = None

    def place(self, sighting: Sighting) -> Report | None:
        """The report in terms of the run; None for headers, repetitions and stragglers."""
        sighting.leave_out_nonsense()
        self._hear(sighting)
        self._note_attempt(sighting.attempt)
        if sighting.phase == "header":
            self.clock.start(sighting.stamp_seconds)
            return None
        if sighting.phase != "train":
            return self._beside(sighting)
        step = self._step(sighting)
        if step is None:
            return None
        if self.step is not None and self._is_other_rank(sighting):
            return self._of_other_rank(sighting, step)
        if self.step is not None and step < self.step and not self._starts_again(step):
            return None
        return self._advance(sighting, step)

    def _advance(self, sighting: Sighting, step: float) -> Report | None:
        before = self.step
        is_repeated = before is not None and step == before and not sighting.closes_epoch
        if is_repeated and (self.has_clock or (sighting.stamp_seconds is None and sighting.elapsed_seconds is None)):
            if sighting.section_seconds is not None:  # a bar drawn again: time passed, steps did not
                self.clock.read(sighting, self._section(sighting), 0.0)
            return None
        steps = step - before if before is not None else self._first_steps(step)
        clock = self.clock.read(sighting, self._section(sighting), steps)
        if before is None:
            self.first_step = step
        elif steps > 0:
            self.interval = steps / sighting.reports
        self.step, self.has_clock = step, clock is not None
        return self._observation(sighting, step, clock)

    def _section(self, sighting: Sighting) -> object:
        return self.attempt, self.epoch, sighting.section

    def _first_steps(self, step: float) -> float:
        """Steps that the first report of an attempt stands for: all, or in a resumed run as many as a report there."""
        return min(step, self.interval) if self.attempt and self.interval else step

    def _hear(self, sighting: Sighting) -> None:
        """Remember what lines announce: totals, the length of an epoch."""
        if sighting.forgets_total:
            self.total = None
        if sighting.total is not None:
            self.total = sighting.total
        if sighting.closes_epoch and sighting.epochs_done is not None:
            self._enter(int(sighting.epochs_done) - 1)
        if sighting.epochs is not None:
            self.epochs = sighting.epochs
        if sighting.batches is not None and sighting.phase in ("train", "header"):
            self._measure(sighting.batches)
        if sighting.rank is not None and self.rank is None and sighting.phase == "train":
            self.rank = sighting.rank

    def _measure(self, batches: float) -> None:
        """Epochs differ by a batch here and there; steps are counted by the first one's length."""
        if self.batches is None or abs(batches - self.batches) > max(1.0, 0.01 * self.batches):
            self.batches = batches

    def _step(self, sighting: Sighting) -> float | None:
        """Where the run is. One that was counted in epochs before a line gave their length stays counted in epochs."""
        if not self.counts_epochs or self.step is None:
            return self._steps(sighting)
        if sighting.epochs_done is not None:
            return sighting.epochs_done
        steps = self._steps(sighting)
        length = self.batches or self.longest_epoch
        if steps is None:
            return None
        self.counts_epochs = bool(length)
        return steps / length if length else steps

    def _steps(self, sighting: Sighting) -> float | None:
        if sighting.epoch is not None:
            self._enter(sighting.epoch)
        length = self.batches or self.longest_epoch
        if sighting.batch is not None and (self.batches or sighting.step is None):
            self.longest_epoch = max(self.longest_epoch, sighting.batch)
            return self._epochs_before() * (length or 0.0) + sighting.batch
        if sighting.step is not None:
            return sighting.step
        if sighting.epochs_done is None:
            is_closing = sighting.closes_epoch and self.epoch is not None and bool(length)
            return (self._epochs_before() + 1) * (length or 0.0) if is_closing else None
        if self.total and self.epochs:
            return sighting.epochs_done / self.epochs * self.total
        self.counts_epochs = not length
        return (sighting.epochs_done - self._origin()) * (length or 1.0)

    def _enter(self, epoch: int) -> None:
        if self.first_epoch is None or epoch < self.first_epoch:
            self.first_epoch = epoch
        self.epoch = epoch

    def _origin(self) -> int:
        """Epochs before the log's first cannot be counted in steps while their length is unknown: count from it."""
        return 0 if self.batches or not self.longest_epoch else (self.first_epoch or 0)

    def _epochs_before(self) -> int:
        return (self.epoch or 0) - self._origin() if self.epoch is not None else 0

    def _starts_again(self, step: float) -> bool:
        """Whether a step back is a new attempt; if so it has begun when this returns."""
        assert self.step is not None
        if step > self.first_step and step >= self.step - STRAGGLING_REPORTS * self.interval:
            return False
        self._begin_anew()
        self.first_step = step
        return True

    def _note_attempt(self, attempt: int | None) -> None:
        """Lines that number their attempts say so where one begins, be it ahead of the step before."""
        if attempt is None:
            return
        if self.named_attempt not in (None, attempt):
            self._begin_anew()
        self.named_attempt = attempt

    def _begin_anew(self) -> None:
        self.attempt += 1
        self.clock.restart()
        self.step = None

    def _is_other_rank(self, sighting: Sighting) -> bool:
        return sighting.rank is not None and self.rank is not None and sighting.rank != self.rank

    def _of_other_rank(self, sighting: Sighting, step: float) -> Report:
        clock = None
        if sighting.stamp_seconds is not None and self.clock.origin_seconds is not None:
            clock = sighting.stamp_seconds - self.clock.origin_seconds
        return self._observation(sighting, step, clock)

    def _beside(self, sighting: Sighting) -> Report | None:
        """Validation, checkpoints and the end: the run stands where it stood."""
        phase: Phase = "end" if sighting.phase == "end" else sighting.phase  # type: ignore[assignment]
        clock = self.clock.read(sighting, self._section(sighting), 0.0) if self._has_time(sighting) else None
        if self.step is None:
            return None
        step = sighting.step if sighting.phase == "end" and sighting.step is not None else self.step
        return self._observation(sighting, step, clock, phase)

    @staticmethod
    def _has_time(sighting: Sighting) -> bool:
        times = (sighting.stamp_seconds, sighting.pause_seconds, sighting.elapsed_seconds)
        return any(seconds is not None for seconds in times)

    def _observation(self, sighting: Sighting, step: float, clock: float | None, phase: Phase = "train") -> Report:
        length = self.batches or self.longest_epoch or None
        return Report(
            step=step,
            clock_seconds=clock,
            phase=phase,
            attempt=self.attempt,
            rank=sighting.rank,
            epoch=self._epoch(sighting, step, length),
            total_steps=self._total(length),
            total_epochs=self.epochs,
            steps_per_epoch=None if self.counts_epochs else length,
            step_seconds=sighting.step_seconds,
            data_seconds=sighting.data_seconds,
            remaining_seconds=sighting.remaining_seconds,
            loss=sighting.loss,
            pause_seconds=sighting.pause_seconds if sighting.what else None,
            what=sighting.what,
        )

    def _total(self, length: float | None) -> float | None:
        if self.counts_epochs and self.epochs is not None:
            return self.epochs
        if self.total is not None:
            return self.total
        if self.epochs is None or length is None:
            return None
        is_settled = self.batches is not None or self.first_epoch != self.epoch
        return (self.epochs - self._origin()) * length if is_settled else None

    def _epoch(self, sighting: Sighting, step: float, length: float | None) -> float | None:
        if sighting.epochs_done is not None:
            return sighting.epochs_done
        if self.epoch is None:
            return None
        if sighting.batch is not None and length:
            return self.epoch + sighting.batch / length
        return float(self.epoch)
