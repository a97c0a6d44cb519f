"""Why a row of a table cannot be forecast: one class per reason, and `FailedRow`, which keeps it.

`measure.evaluate.refusals` groups rows by these classes and those of `epochcast.errors`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import intern

from epochcast.base.record import Record, json_hidden, json_key
from epochcast.errors import BadInput, EpochcastError, NoBuilder


@dataclass(frozen=True, slots=True)
class FailedRow(Record):
    """A row that cannot be forecast, and why. Of its error the texts are kept: tables may have a million rows."""

    row_index: int = field(metadata=json_key("row"))
    model: str
    reason: str
    error_class: str = json_hidden(default="")
    about: str = json_hidden(default="")
    """What the error is about: a name, a value, a column. Empty: the model."""

    @classmethod
    def because(cls, row_index: int, model: str, error: EpochcastError) -> "FailedRow":
        """The row that ended in an error."""
        return cls(row_index, model, intern(str(error)), intern(type(error).__name__), intern(error.about))


class MissingCell(BadInput):
    """An empty cell that the row cannot be without; of several columns, one would do."""

    def __init__(self, *columns: str) -> None:
        super().__init__(f"no {columns[0]}" if len(columns) == 1 else f"neither {' nor '.join(columns)}")
        self.columns = columns

    @property
    def about(self) -> str:
        """The first of its columns."""
        return self.columns[0]


class InvalidCell(BadInput):
    """A cell that holds no usable value."""

    def __init__(self, column: str, allowed: str, value: object) -> None:
        super().__init__(f"{column} must be {allowed}, got {value}")
        self.column = column

    @property
    def about(self) -> str:
        """The column."""
        return self.column


class UnknownUnit(BadInput):
    """A throughput in a unit that is not in the list."""

    def __init__(self, unit: str, known_units: str) -> None:
        super().__init__(f"the throughput counts {unit}; known: {known_units}")
        self.unit = unit

    @property
    def about(self) -> str:
        """The unit."""
        return self.unit


class DoubtfulRow(BadInput):
    """A row whose `quality` says that it is not to be trusted."""

    def __init__(self, quality: str) -> None:
        super().__init__(f"left out for its quality: {quality}")
        self.quality = quality

    @property
    def about(self) -> str:
        """The quality."""
        return self.quality


class CaptureFailed(BadInput):
    """A network whose own code raised an error during the capture."""

    def __init__(self, reference: str, cause: Exception) -> None:
        super().__init__(f"capturing {reference} ended in {type(cause).__name__}: {str(cause)[:200]}")
        self.cause_class = type(cause).__name__

    @property
    def about(self) -> str:
        """The class of the error."""
        return self.cause_class


class LessThanOneSample(BadInput):
    """A batch of less than one sample per GPU."""


class UnknownSampleLength(BadInput):
    """A network of tokens, in a row without the length of a sample."""


class UnknownImageSize(BadInput):
    """A network of images, in a row without their size."""


class UnknownNetworkSize(BadInput):
    """A family of networks, in a row that does not say which member."""


class UnknownBatchUnit(BadInput):
    """A batch that counts tokens in some rows and samples in others."""


class SparseGradients(BadInput):
    """A network trained with sparse gradients of its embedding tables."""


class NoSingleGpuRow(BadInput):
    """A run on several GPUs without a measured run on one."""

    def __init__(self) -> None:
        super().__init__("no single-GPU row of the same system, model, batch per GPU and precision")


class OtherProfileDevice(BadInput):
    """A run on another device than that of the profile."""

    def __init__(self, device: str, run_device: str) -> None:
        super().__init__(f"the profile is a profile of {device}, the row is of {run_device}")


class OtherTrainingData(BadInput):
    """A network that was trained on other data than the row says."""


class LoaderBound(BadInput):
    """A step that waits for data, in a row that does not say how fast they come."""


class OtherSoftware(BadInput):
    """A step that was timed with other software than the row says, or with kernels that nobody here knows."""


UNBUILT: Mapping[str, type[BadInput]] = {
    "no_builder": NoBuilder,
    "network_size": UnknownNetworkSize,
    "sample_length": UnknownSampleLength,
    "image_size": UnknownImageSize,
    "batch_unit": UnknownBatchUnit,
    "sparse_gradients": SparseGradients,
    "loader_bound": LoaderBound,
}
"""Errors by the tables of `model_names.toml` that name networks which cannot be forecast."""
