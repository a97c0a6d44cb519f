"""How much data a job sees: samples of an epoch, epochs, and the tokens of a language model.

    corpus in tokens      samples = tokens ÷ tokens of a sequence
    samples or texts      as they are; packed texts are fewer sequences (`lengths`)
    `tokens` of the job   the whole training; epochs = that ÷ the data set, where there is one

What a network is fed says its first input: whole numbers by position are tokens, (channels, height, width) an image,
one size more a video. A data set of another kind is refused: its samples would be counted as something they are not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from epochcast.base.notes import Importance, Note
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.op_kinds import Embedding
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.lengths import PACKED

if TYPE_CHECKING:
    from epochcast.describe.datasets import Dataset
    from epochcast.predict.forecast.lengths import Lengths

TEXT, IMAGE, VIDEO, NUMBERS = "text", "images", "videos", "numbers"
_DATA = {"image": "images", "video": "videos", "speech": "speech", "text": "text"}


@dataclass(frozen=True, slots=True)
class Data:
    """What a job trains on, as its network counts it. None means that nobody said, or that it is no text.

    `fed` is what the network takes. `samples` and `validation_samples` are of an epoch; `tokens_per_sample` leaves
    padding out.
    """

    fed: str
    samples: int | None
    validation_samples: int
    epochs: float
    tokens_per_sample: float | None
    stored_bytes_per_sample: float | None = None


def data_of(job: Job, trace: Trace) -> Data:
    """The data of a job whose network makes steps like `trace`."""
    fed, dataset = fed_by(trace), job.known_dataset
    _check(job, dataset, fed, trace)
    counting = _Counting(job.length_distribution, token_count(trace) if fed == TEXT else None)
    samples, validation = _of_an_epoch(job, dataset, counting)
    if job.steps_per_epoch is not None:
        samples = steps_samples(job, 1)
    epochs = float(job.epochs)
    if job.tokens is not None:
        wanted = counting.sequences_of_tokens(job.tokens)
        samples, epochs = (wanted, 1.0) if samples is None else (samples, wanted / samples)
    return Data(fed, samples, validation, epochs, counting.tokens_per_sample, _stored_bytes(dataset, counting))


def steps_samples(job: Job, replicas: int) -> int:
    """Samples of an epoch of a fixed number of steps, by the batch of all replicas."""
    if job.samples is not None or job.tokens is not None:
        raise BadInput("`steps_per_epoch` is the length of an epoch: leave `samples` and `tokens` out")
    batch = job.global_batch or (job.batch or 1) * job.accumulate * replicas
    return (job.steps_per_epoch or 1) * batch


def _check(job: Job, dataset: "Dataset | None", fed: str, trace: Trace) -> None:
    for name in ("tokens", "lengths", "packing"):
        if getattr(job, name) not in (None, False) and fed != TEXT:
            raise BadInput(f"`{name}` is for language models: {trace.name} takes {fed}")
    if dataset is not None and not _suits(dataset, fed, trace):
        raise BadInput(
            f"{trace.name} takes {fed}, {dataset.name} is {_DATA[dataset.kind]}: choose another data set, or give "
            "`samples` alone"
        )


@dataclass(frozen=True, slots=True)
class _Counting:
    """How a network counts texts: by their own lengths, or all of the length of its sequences."""

    lengths: "Lengths | None"
    sequence_tokens: int | None

    @property
    def tokens_per_sample(self) -> float | None:
        return self.sequence_tokens if self.lengths is None else self.lengths.tokens_per_sample

    def sequences(self, count: int, dataset: "Dataset | None" = None) -> int:
        """How many sequences so many samples of a data set are."""
        if dataset is not None and dataset.counts_tokens:
            return self.sequences_of_tokens(count)
        return count if self.lengths is None else self.lengths.sequences(count)

    def sequences_of_tokens(self, tokens: int) -> int:
        """tokens ÷ tokens of a sequence; what fills no sequence is left out."""
        each = self.tokens_per_sample
        assert each is not None  # only text is counted so
        return max(1, int(tokens / each))


def _of_an_epoch(job: Job, dataset: "Dataset | None", counting: _Counting) -> tuple[int | None, int]:
    """Samples and validation samples: as given, else the data set's; a part of it has no validation of its own."""
    validation = 0 if job.validation_samples is None else counting.sequences(job.validation_samples)
    if job.samples is not None or dataset is None:
        return None if job.samples is None else counting.sequences(job.samples), validation
    if job.validation_samples is None and dataset.validation_samples:
        validation = counting.sequences(dataset.validation_samples, dataset)
    return counting.sequences(dataset.training_samples, dataset), validation


def _stored_bytes(dataset: "Dataset | None", counting: _Counting) -> float | None:
    """On disk, of one sample as the network is fed it."""
    if dataset is None:
        return None
    return dataset.training_bytes / counting.sequences(dataset.training_samples, dataset)


def fed_by(trace: Trace) -> str:
    """What a network takes, by its first input."""
    if not trace.inputs:
        return NUMBERS
    first = trace.inputs[0]
    sizes = first.shape[1:]
    if len(sizes) == 1 and sizes[0] > 1 and (not first.dtype.is_float or _is_looked_up(trace, first.name)):
        return TEXT
    return {3: IMAGE, 4: VIDEO}.get(len(sizes), NUMBERS)


def token_count(trace: Trace) -> int:
    """Tokens of one sequence, padding included."""
    return trace.inputs[0].shape[1]


def is_packed(job: Job) -> bool:
    """Whether texts are joined into sequences of one length."""
    lengths = job.length_distribution
    return job.packing or (lengths is not None and lengths.way == PACKED)


def _counts_sequences(job: Job) -> bool:
    """Whether the training is counted in tokens or steps, whatever its texts are joined from."""
    return job.tokens is not None or job.steps_per_epoch is not None


def length_notes(job: Job, batch: int, data: Data, trace: Trace) -> Iterator[str]:
    """What is assumed of texts in batches of `batch`, and what packing needs to know of them."""
    lengths, dataset = job.length_distribution, job.known_dataset
    if lengths is not None:
        yield from lengths.notes(batch)
    elif job.packing and not (_counts_sequences(job) or (dataset is not None and dataset.counts_tokens)):
        tokens = token_count(trace)
        example = f"`lengths` mean={min(180, tokens)},max={tokens}"
        yield Note(
            f"Packing: the mean length of the texts is unknown, so each counts as a sequence of {tokens:,} tokens. "
            f"Give {example}{'' if data.samples else ' and `samples`'}.",
            Importance.NOT_AS_ASKED,
        )


def _is_looked_up(trace: Trace, name: str) -> bool:
    """Whether an input is read by an embedding: Keras may keep tokens as floats."""
    lookups = (op for op in trace.template.base if isinstance(op.kind, Embedding) and op.phase is Phase.FORWARD)
    return any(tensor.name == name for op in lookups for tensor in op.inputs)


def _suits(dataset: "Dataset", fed: str, trace: Trace) -> bool:
    """Whether the samples of a data set are what a network takes. Images may come as a row of their values, speech as
    one of a signal's or as a picture of its frequencies (one channel).
    """
    sizes = trace.inputs[0].shape[1:] if trace.inputs else ()
    match dataset.kind:
        case "text":
            return fed == TEXT
        case "video":
            return fed == VIDEO
        case "speech":
            return fed == NUMBERS or (fed == IMAGE and sizes[0] == 1)
        case _:
            return fed == IMAGE or (fed == NUMBERS and prod(sizes) == prod(dataset.sample_shape))
