"""The answer: what one step, one epoch and the job take, need and cost, and how sure that is. Plain numbers.

A forecast can be compared, pickled, written down as JSON and read back, or written by hand:

    >>> step = Interval(0.09, 0.1, 0.12)
    >>> answer = Forecast("own", "V100", batch_per_gpu=64, step_seconds=step, total_seconds=step.scaled(1000))
    >>> Forecast.from_dict(answer.as_dict()) == answer, answer.samples_per_second
    (True, 640.0)

What the numbers were made of (the trace, the timeline of memory, what would make it fit) is reached through `details`,
by whoever asked for the forecast; a forecast that was read back has none.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from epochcast.base.display import Displayed
from epochcast.base.frames import Framed
from epochcast.base.options import check_fields, value_options
from epochcast.base.record import Record, plain, record_fields
from epochcast.errors import BadInput, UnknownName
from epochcast.interval import Interval
from epochcast.predict.forecast.step_parts import StepParts
from epochcast.predict.forecast.uncertainty import UncertainPart
from epochcast.predict.memory.verdict import DOES_NOT_FIT, FITS, VERDICTS, is_fitting
from epochcast.units import show_seconds

if TYPE_CHECKING:
    from epochcast.predict.forecast.forecast_details import Details
    from epochcast.predict.forecast.remedies import Remedy


@dataclass(frozen=True, repr=False)
class Forecast(Displayed, Framed, Record):
    """A job at a place, as numbers. None means that nobody said (how much data, which price) or nobody asked (memory).

    `batch_per_gpu` counts all accumulated passes; `replicas` are the copies of the model that see different samples, as
    many as GPUs unless given.
    `step_parts` sum to the middle of the step; `bubble_seconds` of them are a pipeline's stages waiting for each other.
    `device_measured` says what the learned model was fitted on of this device (`hardware.measured_devices`): "steps" …
    "never".
    `uncertainty` says what makes the interval of the step as wide as it is, the largest part first; `peak_uncertainty`
    says it of the peak of memory.
    `link_assumed` is the network between nodes that was taken because none was named.
    `peak_bytes` is what nvidia-smi shows, `reserved_bytes` and `allocated_bytes` are PyTorch's; `memory_bytes` is what
    the device has. `fits_probability` is that of the peak being on the device, `memory_verdict` the same in a word:
    "fits", "tight" or "does not fit". `dollars_per_hour` is for all GPUs.
    `fed` is what the network takes: text, images, videos or numbers. `epochs` are whole unless the training is counted
    in tokens. `tokens_per_sample` are of text, without padding, `sequence_length` with it; `mfu` is the part of the
    GPUs' peak that is the model's own work (`utilisation`).
    `contents` says what is in a sample besides text: images and their tokens, sound, labels.
    `weights` is how parameters, gradients and the optimizer's copy are kept (`describe.graph.weights`).
    `checkpointing` is "none", "full" or "selective"; `channels_last` the layout of images in memory; `lora_targets` the
    last names of the layers that LoRA adapts. `assumed` are options that nobody said, with the values taken instead.
    `host_bytes` is the memory that each node needs of its host for what is offloaded or paged there.

    >>> import epochcast as ec
    >>> step = ec.Interval(0.09, 0.10, 0.12)
    >>> answer = ec.Forecast("mine", "V100", step, batch_per_gpu=64)
    >>> answer.samples_per_second
    640.0
    """

    view: ClassVar[str] = "forecast"
    json_version: ClassVar[int | None] = 1
    json_lenient: ClassVar[bool] = True
    json_also: ClassVar[tuple[str, ...]] = (
        *("fits", "samples_per_second", "images_per_second", "tokens_per_second", "tokens_per_second_per_gpu"),
        *("tokens", "dollars"),
    )

    model: str
    device: str
    step_seconds: Interval
    gpus: int = 1
    nodes: int = 1
    strategy: str = "single"
    replicas: int = 0
    precision: str = "fp32"
    weights: str | None = None
    offload: str = "none"
    optimizer: str = "sgd"
    mode: str = "training"
    framework: str = "pytorch"
    attention: str | None = None
    attention_window: str = ""
    compile: str = "none"
    eager_loss: bool = False
    expert_capacity: float | None = None
    expert_imbalance: float = 1.0
    kernels: str = "none"
    batch_per_gpu: int = 1
    global_batch: int = 0
    accumulate: int = 1
    augment: int = 1
    checkpointing: str = "none"
    channels_last: bool = False
    lora: int = 0
    adapter: str = "lora"
    lora_targets: tuple[str, ...] = ()
    four_bit: bool = False
    quantize: str = "none"
    dataset: str | None = None
    fed: str | None = None
    samples: int | None = None
    epochs: float = 1
    tokens_per_sample: float | None = None
    sequence_length: int | None = None
    longest_sequence: int | None = None
    contents: str = ""
    packing: bool = False
    steps_per_epoch: int | None = None
    step_parts: StepParts | None = None
    bubble_seconds: float = 0.0
    epoch_seconds: Interval | None = None
    total_seconds: Interval | None = None
    peak_bytes: Interval | None = None
    peak_breakdown: Mapping[str, int] = field(default_factory=dict, hash=False)
    peak_op: str | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    memory_bytes: int | None = None
    host_bytes: int = 0
    memory_verdict: str | None = None
    fits_probability: float | None = None
    dollars_per_hour: float | None = None
    price_source: str | None = None
    flops_per_sample: float | None = None
    mfu: float | None = None
    parameters: int | None = None
    trainable_parameters: int | None = None
    answered_by: Mapping[str, float] = field(default_factory=dict, hash=False)
    uncertainty: tuple[UncertainPart, ...] = ()
    peak_uncertainty: tuple[UncertainPart, ...] = ()
    device_measured: str | None = None
    opaque_ops: tuple[str, ...] = ()
    link_assumed: str | None = None
    assumed: Mapping[str, str | int | list[int]] = field(default_factory=dict, hash=False)
    warnings: tuple[str, ...] = ()
    _details: "Callable[[], Details] | None" = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check_fields(self, _TYPES)
        for name in ("gpus", "nodes", "batch_per_gpu", "accumulate", "augment"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} must be at least 1, got {getattr(self, name)}")
        if not self.epochs > 0:
            raise BadInput(f"epochs must be above 0, got {self.epochs}")
        if self.epochs == int(self.epochs):
            object.__setattr__(self, "epochs", int(self.epochs))
        if not self.step_seconds.mid > 0:
            raise BadInput(f"step_seconds must be positive, got {self.step_seconds.mid}")
        if self.memory_verdict not in (None, *VERDICTS):
            raise UnknownName("memory verdict", str(self.memory_verdict), VERDICTS)
        if not self.replicas:
            object.__setattr__(self, "replicas", self.gpus)
        if not self.global_batch:
            object.__setattr__(self, "global_batch", self.batch_per_gpu * self.replicas)

    def __repr__(self) -> str:
        step = self.step_seconds
        took = f"{show_seconds(step.mid)} ({show_seconds(step.low)} … {show_seconds(step.high)})"
        return f"Forecast({self.model} on {self.gpus} × {self.device}, batch {self.batch_per_gpu}: step {took})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_details": None}

    @property
    def fits(self) -> bool | None:
        """Whether the peak is more likely than not on the device; None where nobody asked."""
        return is_fitting(self.memory_verdict, self.fits_probability)

    @property
    def samples_per_second(self) -> float:
        """Distinct samples over all GPUs."""
        return self.global_batch / self.step_seconds.mid

    @property
    def tokens_per_second(self) -> float | None:
        """Of text, without padding, over all GPUs; None for what is no language model."""
        return None if self.tokens_per_sample is None else self.samples_per_second * self.tokens_per_sample

    @property
    def tokens_per_second_per_gpu(self) -> float | None:
        """The share of each GPU."""
        return None if self.tokens_per_second is None else self.tokens_per_second / self.gpus

    @property
    def images_per_second(self) -> float | None:
        """Over all GPUs; None for what takes no images."""
        return self.samples_per_second if self.fed == "images" else None

    @property
    def tokens(self) -> int | None:
        """Of the whole job; None where nobody said, or for what is no language model."""
        if self.samples is None or self.tokens_per_sample is None:
            return None
        return round(self.samples * self.tokens_per_sample * self.epochs)

    @property
    def dollars(self) -> Interval | None:
        """The job at the price of its place; None where either is unknown."""
        if self.total_seconds is None or self.dollars_per_hour is None:
            return None
        return self.total_seconds.scaled(self.dollars_per_hour / 3600)

    @property
    def has_details(self) -> bool:
        """Whether it was forecast here, not read back or written by hand."""
        return self._details is not None

    @property
    def setup(self) -> dict[str, Any]:
        """What decides the numbers beside model and place, and what of it was assumed."""
        return {name: plain(getattr(self, name)) for name in SETUP}

    @property
    def details(self) -> "Details":
        """What the numbers were made of."""
        if self._details is None:
            raise BadInput("this forecast was read back and has only its numbers; forecast the job again for details")
        return self._details()

    def remedies(self) -> "tuple[Remedy, ...]":
        """What would make the job fit, one change each; nothing where it fits. Looked for when asked."""
        return self.details.remedies() if self.fits is False else ()

    def records(self) -> tuple[dict[str, Any], ...]:
        """One row: all its numbers."""
        return (self.as_dict(),)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Forecast":
        """The forecast of `as_dict`. Derived numbers are worked out again, keys of others are left aside."""
        forecast = super().from_dict(values)
        if forecast.memory_verdict is None and values.get("fits") is not None:  # written by hand
            return replace(forecast, memory_verdict=FITS if values["fits"] else DOES_NOT_FIT)
        return forecast


SETUP = (
    *(
        "sequence_length",
        "contents",
        "checkpointing",
        "channels_last",
        "lora",
        "adapter",
        "lora_targets",
        "four_bit",
        "quantize",
        "attention",
    ),
    "compile",
    "kernels",
    "assumed",
)
"""Keys that decide the numbers beside model and place; the answers of other verbs have them, too."""

MEMORY_KEYS = (
    *("device", "batch_per_gpu", "peak_bytes", "peak_breakdown", "peak_op", "allocated_bytes", "reserved_bytes"),
    *("memory_bytes", "fits", "memory_verdict", "fits_probability"),
)
"""Keys about the memory of a step; `inspect` shows them."""

_TYPES = value_options(Forecast, record_fields(Forecast), Details=object)
