"""What a larger batch costs in learning: the epochs of a job at another batch.

To the same loss a job needs S steps over E samples, which trade against each other (McCandlish et al. 2018, eq. 2.11):

    (S/S_min − 1)·(E/E_min − 1) = 1,   so   E(B) = E_min·(1 + B/B_crit),   S(B) = S_min·(1 + B_crit/B)

B_crit is the critical batch size, near the gradient-noise scale: there a job needs twice the fewest steps and twice the
fewest samples. Epochs that are right at one batch are, at another,

    epochs(B) = epochs(B_ref) · (B + B_crit) / (B_ref + B_crit)

McCandlish, Kaplan, Amodei et al., An Empirical Model of Large-Batch Training, arXiv:1812.06162, 2018. Of language
models B_crit depends on the loss L (nats per token): 2·10⁸ tokens / L^(1/0.21) (Kaplan et al., Scaling Laws for Neural
Language Models, arXiv:2001.08361, 2020, eq. 1.4). Values by task are in critical_batches.toml.

Limits: learning rates must be tuned at each batch; B_crit grows during training, the tables have an average; it is one
number per task, though Shallue et al. (2019) found it to differ by model and optimizer.
"""

from dataclasses import dataclass
from math import isfinite

from epochcast.base import catalogue_rows as rows
from epochcast.base.caching import remembered
from epochcast.base.name_matching import plain
from epochcast.errors import BadInput, UnknownName
from epochcast.units import parse_count

CRITICAL_FILE = "critical_batches.toml"
# Kaplan et al. 2020, eq. 1.4 and table 5; recalled, not looked up.
LANGUAGE_TOKENS, LANGUAGE_EXPONENT = 2e8, 0.21


@dataclass(frozen=True, slots=True)
class CriticalBatch:
    """The critical batch of a task, in samples or in tokens."""

    name: str
    size: float
    in_tokens: bool = False
    source: str = "as given"
    verified: bool = True

    def __post_init__(self) -> None:
        if not (isfinite(self.size) and self.size > 0):
            raise BadInput(f"a critical batch must be above 0, got {self.size:g}")

    @property
    def credit(self) -> str:
        """Where it is from, and whether anybody looked it up there."""
        return self.source if self.verified else f"{self.source}, recalled"

    def samples(self, tokens_per_sample: float | None) -> float:
        """In samples of the job."""
        if not self.in_tokens:
            return self.size
        if tokens_per_sample is None:
            raise BadInput(f"the critical batch of {self.name} is in tokens: this job has samples")
        return self.size / tokens_per_sample

    def epochs_factor(self, batch: int, reference_batch: int, tokens_per_sample: float | None = None) -> float:
        """epochs(B) / epochs(B_ref)."""
        critical = self.samples(tokens_per_sample)
        return (batch + critical) / (reference_batch + critical)


def critical_batch(text: str) -> CriticalBatch:
    """A number of samples ("15k"), a task of the table ("imagenet"), or a language model's loss ("loss=2.6")."""
    name, equals, loss = text.partition("=")
    if equals and name.strip().casefold() == "loss":
        try:
            nats = float(loss)
        except ValueError:
            nats = float("nan")
        if not 0.1 <= nats <= 20:
            raise BadInput(f"a loss is in nats per token, like loss=2.6; got {text!r}")
        tokens = LANGUAGE_TOKENS / nats ** (1 / LANGUAGE_EXPONENT)
        source = f"Kaplan et al. 2020, eq. 1.4, at a loss of {nats:g} nats per token"
        return CriticalBatch(f"language at loss {nats:g}", tokens, in_tokens=True, source=source)
    tasks = critical_batches()
    if plain(text) in tasks:
        return tasks[plain(text)]
    if text.strip()[:1].isdigit():
        return CriticalBatch("as given", float(parse_count(text)))
    raise UnknownName("task with a critical batch", text, [each.name for each in tasks.values()])


@remembered(1)
def critical_batches() -> dict[str, CriticalBatch]:
    """The shipped rows by plain name."""
    return load_critical_batches(rows.shipped(CRITICAL_FILE, __file__))


def load_critical_batches(text: str, file: str = CRITICAL_FILE) -> dict[str, CriticalBatch]:
    """The rows of a TOML text."""
    return {plain(task.name): task for task in rows.read(rows.parse(text, file), "task", file, _row)}


def _row(row: rows.CatalogueRow) -> CriticalBatch:
    return CriticalBatch(
        row.text("name"), row.number("size"), row.flag("in_tokens", False), row.text("source"), row.flag("verified")
    )


@dataclass(frozen=True, slots=True)
class Learning:
    """A critical batch, and the batch for which a job's epochs are meant."""

    critical: CriticalBatch
    reference_batch: int

    def factor(self, batch: int, tokens_per_sample: float | None) -> float:
        """By how much more (or less) data a batch needs."""
        return self.critical.epochs_factor(batch, self.reference_batch, tokens_per_sample)
