"""What somebody saw of a run: seconds per step, sample, token, epoch or job, and signs of what the time goes into.

An observation has an interval of its own: a typed number is known to half of its last digit, the pace of a log to the
scatter of its steps.
"""

from dataclasses import dataclass, field

from epochcast.base.record import HIDDEN, Record
from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.predict.forecast.forecast import Forecast

STEP, SAMPLE, IMAGE, TOKEN, EPOCH, JOB = "step", "sample", "image", "token", "epoch", "job"
TYPED, LOG, PROCESS, TRACE = "typed", "log", "process", "trace"
"""Where an observation comes from."""
IMAGES = "images"
"""What a forecast says of a network that takes images (`Forecast.fed`)."""


@dataclass(frozen=True, slots=True)
class GpuReading(Record):
    """What NVML says of one GPU at a moment; None where it does not say."""

    name: str
    memory_bytes: int
    memory_used_bytes: int
    utilisation_fraction: float | None = None
    clock_hertz: float | None = None
    top_clock_hertz: float | None = None
    limit_watts: float | None = None
    default_limit_watts: float | None = None
    throttled_by: tuple[str, ...] = ()
    lanes: int | None = None
    top_lanes: int | None = None
    other_processes: int = 0


@dataclass(frozen=True, slots=True)
class RunSigns(Record):
    """What an observation shows besides a speed; None where it does not show it. Fractions are of a step's time.

    `steps` were seen. `data_fraction` waited for data, in `idle_fraction` neither the host nor the GPU had an operator
    to run, in `sync_fraction` the host waited for the GPU, `busy_fraction` had a kernel running, `exchange_fraction` a
    kernel that exchanges with other GPUs. `pause_fraction` of the time between the first and the last report was no
    step. The first steps took `first_factor` times as long as later ones, the slowest rank `rank_factor` times the
    median of the others. `single_fraction` of the time in matrix products was in kernels of plain float32. `device` is
    the GPU that the source names.
    """

    steps: float | None = None
    data_fraction: float | None = None
    idle_fraction: float | None = None
    sync_fraction: float | None = None
    busy_fraction: float | None = None
    exchange_fraction: float | None = None
    pause_fraction: float | None = None
    first_factor: float | None = None
    rank_factor: float | None = None
    single_fraction: float | None = None
    device: str | None = None
    gpu: GpuReading | None = None


NO_SIGNS = RunSigns()


@dataclass(frozen=True, slots=True)
class Observation(Record):
    """Seconds per `unit`, as `text` said it. `is_per_gpu` where a rate is said to be that of one GPU."""

    text: str
    seconds: Interval
    unit: str = STEP
    source: str = TYPED
    is_per_gpu: bool = False
    signs: RunSigns = field(default=NO_SIGNS, metadata=HIDDEN)

    def __post_init__(self) -> None:
        if not self.seconds.low > 0:
            raise BadInput(f"an observation must take more than 0 seconds, got {self.text!r}")

    def step_seconds(self, forecast: Forecast) -> Interval:
        """Seconds per step of the forecast's job, all GPUs and accumulated passes together."""
        gpus = forecast.gpus if self.is_per_gpu else 1
        samples = forecast.global_batch / gpus
        match self.unit:
            case "step":
                return self.seconds
            case "sample":
                return self.seconds.scaled(samples)
            case "image":
                if forecast.fed != IMAGES:
                    raise BadInput(f"{self.text!r} counts images, and {forecast.model} takes {_fed(forecast)}")
                return self.seconds.scaled(samples)
            case "token":
                return self._of_tokens(forecast, samples)
        return self.seconds.scaled(1 / self._steps(forecast))

    def _of_tokens(self, forecast: Forecast, samples: float) -> Interval:
        """Trainers count tokens with or without their padding: the interval holds both."""
        tokens = forecast.tokens_per_sample
        if not tokens:
            raise BadInput(f"{self.text!r} counts tokens, and {forecast.model} takes {_fed(forecast)}")
        padded = max(tokens, forecast.sequence_length or 0)
        middle = self.seconds.scaled(samples * tokens)
        return Interval(middle.low, middle.mid, middle.high * padded / tokens, middle.coverage)

    def _steps(self, forecast: Forecast) -> float:
        """Of an epoch, or of the whole job."""
        if forecast.steps_per_epoch is None:
            raise BadInput(
                f"{self.text!r} is the time of {self.unit_phrase}: say how much data there is, like --samples 50k, or "
                "--dataset"
            )
        return forecast.steps_per_epoch * (forecast.epochs if self.unit == JOB else 1)

    @property
    def unit_phrase(self) -> str:
        """an epoch"""
        return f"{'an' if self.unit[0] in 'aeiou' else 'a'} {self.unit}"


def _fed(forecast: Forecast) -> str:
    return forecast.fed or "other inputs"
