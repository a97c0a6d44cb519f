"""Data sets by name, from `datasets.toml`: how much there is of what, of what shape, how large on disk.

Texts have a mean length where their card or paper tells it (`mean_tokens`); `sample_shape` has the usual maximum.
Texts without borders (a corpus) are counted in tokens: how many samples they are says the length of a network's
sequences, samples = tokens ÷ length.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from epochcast.base import catalogue_rows as rows
from epochcast.base.caching import remembered
from epochcast.errors import BadInput, UnknownName

KINDS = ("image", "video", "speech", "text")
TOKEN = "token"
DATASETS_FILE = "datasets.toml"


@dataclass(frozen=True, slots=True)
class Dataset:
    """Counts and sizes of a published data set; `bytes_per_sample` is the mean as stored (compressed).

    `kind` is what a network must take to be trained on it. `unit` is what is counted: an image, a clip, a text, or a
    token of a corpus; `training_samples`, `validation_samples` and `bytes_per_sample` are in that unit.
    """

    name: str
    task: str
    kind: str
    unit: str
    training_samples: int
    validation_samples: int
    sample_shape: tuple[int, ...]
    classes: int | None
    bytes_per_sample: float
    source: str
    verified: bool
    aliases: tuple[str, ...] = ()
    note: str = ""
    mean_tokens: float | None = None
    mean_tokens_source: str = ""

    def __post_init__(self) -> None:
        if not self.name or not self.source:
            raise BadInput(f"a dataset needs a name and a source, got {self.name!r} and {self.source!r}")
        if self.kind not in KINDS:
            raise UnknownName("kind of data", self.kind, KINDS)
        if self.training_samples < 1:
            raise BadInput(f"training_samples must be at least 1, got {self.training_samples}")
        if self.validation_samples < 0:
            raise BadInput(f"validation_samples must be at least 0, got {self.validation_samples}")
        if any(size < 1 for size in self.sample_shape):
            raise BadInput(f"sample_shape must be of sizes of at least 1, got {self.sample_shape}")
        if self.classes is not None and self.classes < 2:
            raise BadInput(f"classes must be at least 2, got {self.classes}")
        if not (isfinite(self.bytes_per_sample) and self.bytes_per_sample > 0):
            raise BadInput(f"bytes_per_sample must be above 0, got {self.bytes_per_sample}")
        if self.mean_tokens is not None:
            self._check_mean()

    def _check_mean(self) -> None:
        if self.kind != "text" or self.counts_tokens:
            raise BadInput(f"only texts have a mean length, {self.name} counts {self.unit}s")
        if not (self.mean_tokens and 1 <= self.mean_tokens <= self.sample_shape[0]):
            raise BadInput(f"mean_tokens must be between 1 and {self.sample_shape[0]}, got {self.mean_tokens}")
        if not self.mean_tokens_source:
            raise BadInput(f"mean_tokens of {self.name} need a source")

    @property
    def training_bytes(self) -> float:
        """On disk, of all that is trained on."""
        return self.training_samples * self.bytes_per_sample

    @property
    def counts_tokens(self) -> bool:
        """Whether its size is in tokens, not in samples."""
        return self.unit == TOKEN


def find_dataset(name: str) -> Dataset:
    """The data set called `name`."""
    return rows.find_by_name("dataset", name, _datasets())


def datasets() -> tuple[Dataset, ...]:
    """Every data set of the catalogue."""
    return tuple(dict.fromkeys(_datasets().values()))


def load_datasets(text: str, file: str = DATASETS_FILE) -> Mapping[str, Dataset]:
    """The data sets in a TOML text by plain name."""
    return rows.index_by_name(rows.read(rows.parse(text, file), "dataset", file, _dataset), file)


@remembered(1)
def _datasets() -> Mapping[str, Dataset]:
    return load_datasets(rows.shipped(DATASETS_FILE, __file__))


def _dataset(row: rows.CatalogueRow) -> Dataset:
    return Dataset(
        name=row.text("name"),
        task=row.text("task"),
        kind=row.text("kind"),
        unit=row.text("unit"),
        training_samples=row.count("training_samples"),
        validation_samples=row.count("validation_samples"),
        sample_shape=row.counts("sample_shape"),
        classes=row.count("classes") if row.has("classes") else None,
        bytes_per_sample=row.number("bytes_per_sample"),
        source=row.text("source"),
        verified=row.flag("verified"),
        aliases=row.texts("aliases"),
        note=row.text("note", ""),
        mean_tokens=row.number("mean_tokens") if row.has("mean_tokens") else None,
        mean_tokens_source=row.text("mean_tokens_source", ""),
    )
