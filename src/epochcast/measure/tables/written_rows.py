"""Rows as people write them, completed by what other cells, their note and their trainer say of an empty one.

    model "gpt2 (124M, rotary)"                  gpt2, where nothing has the whole name
    model "… 24 layers, hidden 1536, 12 heads"   the columns `layers`, `hidden`, `heads`; "vocab 50304" is `vocab`
    input_shape "alpaca", "max 2048 (alpaca)"    the mean length of that data set's texts
    note "global batch 256", "8 sequences per optimizer step", "total batch 64"         the column `global_batch`
    no batch, and a trainer that has a default                                          that default
    tokens_per_second                            the throughput, where there is no other
    total_hours, "558k samples, 1 epoch"         seconds of a step: hours / updates, validation and saving among them
    total_hours, "100 epochs of 3,018 images"    the same

Whatever is taken from elsewhere than the row itself is a note.
"""

import re
from collections.abc import Mapping
from math import ceil
from typing import Any

from epochcast.base.caching import remembered
from epochcast.describe.capture.hub import is_known
from epochcast.describe.capture.zoo import ZOO
from epochcast.describe.datasets import Dataset, datasets
from epochcast.errors import EpochcastError
from epochcast.measure.tables.cells import Row, count, number, text
from epochcast.measure.tables.model_lookup import reference_of
from epochcast.measure.tables.row_names import row_names
from epochcast.measure.tables.run_lengths import says_lengths
from epochcast.measure.tables.run_network import is_listed, longest_sample, read_size

VOCABULARY, HEAD_WIDTH = 50_304, 128
"""Of decoders whose rows say neither: GPT-2's, padded to a multiple of 64, and the width of a head in most."""
_BRACKETS = re.compile(r"\s*\([^)]*\)$")
_SIZES = re.compile(r"\b(\d+) layers, hidden (\d+)(?:, (\d+) heads)?(?:, vocab (\d+))?")
_GLOBAL_BATCH = re.compile(r"\b(?:global|total) batch (\d+)\b|\b(\d+) sequences per optimizer step\b")
_COUNT = r"(\d[\d,]*(?:\.\d+)?k?)"
_SAMPLES = re.compile(rf"\b{_COUNT} samples, (\d+) epochs?\b")
_EPOCHS = re.compile(rf"\b(\d+) epochs of {_COUNT} images\b")
_HOUR_SECONDS = 3600.0


def completed(row: Row) -> tuple[Row, tuple[str, ...]]:
    """The row with the cells that follow from others, and what was assumed for it."""
    filled: dict[str, Any] = dict(row)
    notes: list[str] = []
    _fill_model(filled, notes)
    _fill_lengths(filled, notes)
    _fill_batch(filled, notes)
    _fill_recomputing(filled, notes)
    _fill_time(filled, notes)
    return filled, tuple(notes)


def trainer_default(row: Row, name: str) -> Any:
    """What the trainer of a row takes where nothing is said; None where the list has none for it."""
    words = text(row, "framework").casefold()
    defaults: Mapping[str, Mapping[str, Any]] = row_names()["trainer_defaults"]
    return next((values.get(name) for trainer, values in defaults.items() if trainer in words), None)


def named_texts(words: str) -> Dataset | None:
    """The data set of texts that words name, if its mean length is known; of several the longest name."""
    lower = words.casefold()
    named = [name for name in _texts() if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", lower)]
    return _texts()[max(named, key=len)] if named else None


@remembered(1)
def _texts() -> Mapping[str, Dataset]:
    with_length = [each for each in datasets() if each.mean_tokens is not None]
    return {name.casefold(): each for each in with_length for name in (each.name, *each.aliases)}


def _fill_model(row: dict[str, Any], notes: list[str]) -> None:
    model = text(row, "model")
    sizes = _SIZES.search(model)
    if sizes is not None and not count(row, "layers"):
        layers, hidden = int(sizes[1]), int(sizes[2])
        row |= {"layers": layers, "hidden": hidden, "heads": int(sizes[3] or max(hidden // HEAD_WIDTH, 1))}
        row["vocab"] = int(sizes[4] or VOCABULARY)
        if not sizes[4]:
            notes.append(f"the vocabulary is not given: {VOCABULARY:,} tokens are assumed")
        return
    bare = _BRACKETS.sub("", model)
    source = text(row, "source")
    if bare != model and not _is_named(source, model) and _is_named(source, bare):
        row["model"] = bare
        notes.append(f"{model} is answered as {bare}")


def _fill_lengths(row: dict[str, Any], notes: list[str]) -> None:
    """Texts of a data set that the row names, where it says no length but a maximum."""
    words = text(row, "input_shape")
    longest = longest_sample(row)
    if count(row, "sequence_length") or (read_size(words) is not None if longest is None else says_lengths(row)):
        return
    texts = named_texts(words)
    if texts is not None and texts.mean_tokens is not None:
        most = longest or texts.sample_shape[0]
        row["input_shape"] = f"mean {min(round(texts.mean_tokens), most)}, max {most} ({texts.name})"
        notes.append(f"texts of {texts.name} have {texts.mean_tokens:g} tokens on average")


def _is_named(source: str, model: str) -> bool:
    return is_listed(source, model) or reference_of(model) in ZOO or is_known(model)


def _fill_batch(row: dict[str, Any], notes: list[str]) -> None:
    if any(number(row, name) is not None for name in ("batch_per_gpu", "global_batch", "micro_batch")):
        return
    match = _GLOBAL_BATCH.search(text(row, "note"))
    if match is not None:
        row["global_batch"] = int(match[1] or match[2])
        return
    batch = trainer_default(row, "batch")
    if batch is not None:
        row["batch_per_gpu"] = batch
        notes.append(f"the batch is not given: {batch}, the default of {text(row, 'framework')}, is assumed")


def _fill_recomputing(row: dict[str, Any], notes: list[str]) -> None:
    if text(row, "recompute"):
        return
    usual = trainer_default(row, "recompute")
    if usual is not None:
        row["recompute"] = usual
        notes.append(
            f"checkpointing is not given: {usual}, as {text(row, 'framework')}'s documentation sets it, is assumed"
        )


def _fill_time(row: dict[str, Any], notes: list[str]) -> None:
    if any(number(row, name) is not None for name in ("step_seconds", "samples_per_second")):
        return
    tokens = number(row, "tokens_per_second")
    if tokens is not None:
        texts = named_texts(text(row, "input_shape"))
        mean = texts.mean_tokens if texts else None
        row |= {"samples_per_second": tokens / mean} if mean else {"samples_per_second": tokens, "unit": "tokens"}
        return
    hours, samples = number(row, "total_hours"), _samples(text(row, "note"))
    if hours is None or samples is None:
        return
    batch = _update(row)
    if batch is not None:
        seen, epochs = samples
        row["step_seconds"] = hours * _HOUR_SECONDS / (ceil(seen / batch) * epochs)
        notes.append("the step is the whole run over its updates: validation and saving are in it")


def _samples(note: str) -> tuple[float, int] | None:
    """Samples of an epoch, and epochs."""
    match = _SAMPLES.search(note)
    if match is not None:
        return _counted(match[1]), int(match[2])
    match = _EPOCHS.search(note)
    return None if match is None else (_counted(match[2]), int(match[1]))


def _counted(words: str) -> float:
    plain = words.replace(",", "")
    return float(plain.removesuffix("k")) * (1000 if plain.endswith("k") else 1)


def _update(row: Row) -> float | None:
    """Samples of an update over all GPUs."""
    try:
        stated = number(row, "global_batch")
        of_one = number(row, "batch_per_gpu")
        gpus, passes = count(row, "gpus") or 1, count(row, "grad_accum") or 1
    except EpochcastError:
        return None
    return stated or (of_one * gpus * passes if of_one else None)
