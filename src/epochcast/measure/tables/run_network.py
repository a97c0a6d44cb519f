"""Which network a row means, how large its samples are, and what its throughput counts.

Names differ by source; `model_names.toml` has our name of each, or the reason why it cannot be built. An entry there is
a name, or a table with these keys:

    model               our reference
    heads               references by the `task` of the row (`row_names.toml` has the words of tasks)
    input               the shape of a sample for rows whose own cannot be read, `unshaped` another model for those
    inputs              shapes by the batch, for a benchmark that changed its sizes
    tokens              of a sample, in a throughput of tokens; `batch_in_tokens`: the batch counts them, too
    aux                 false: without auxiliary heads
    latent              the network works on latents: a picture of the row's size has so many pixels per side of one
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from epochcast.base.caching import remembered
from epochcast.describe.capture.hub import is_hub_id
from epochcast.describe.capture.model_reference import SIZES, ModelReference
from epochcast.describe.capture.zoo import ZOO
from epochcast.describe.capture.zoo.sized import decoder_reference
from epochcast.errors import BadInput
from epochcast.measure.tables import cells
from epochcast.measure.tables.cells import Row, count, number, text
from epochcast.measure.tables.detector_rows import FRAMEWORKS, RESIZED, detector_row, mean_shape
from epochcast.measure.tables.face_rows import face_reference
from epochcast.measure.tables.model_lookup import by_squeezed, reference_of, squeezed
from epochcast.measure.tables.row_errors import (
    UNBUILT,
    InvalidCell,
    MissingCell,
    UnknownImageSize,
    UnknownSampleLength,
)
from epochcast.measure.tables.row_names import is_per_gpu, is_trainer, named_task, named_unit, row_names
from epochcast.units import parse_shape, parse_uneven

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NamedNetwork:
    """The network that a row means: the reference for `find_model`, and the input size. A sample has `tokens` tokens
    in a throughput of tokens, and `batch_units` units of the table's batch (1 unless that counts tokens).
    """

    reference: str
    input_shape: Shape | None
    tokens: float | None = None
    batch_units: float = 1
    parameters: float | None = None
    uneven: float = 0.0
    aux: bool = True
    is_sized: bool = False
    """Whether it is a decoder described by its sizes alone."""
    largest_shape: Shape | None = None
    """The largest sample, where samples differ: the peak of memory is its batch's."""

    @property
    def is_of_texts(self) -> bool:
        """Whether its input is a sequence of tokens."""
        return self.input_shape is not None and len(self.input_shape) == 1


@remembered(1)
def model_names() -> Mapping[str, Any]:
    """What names of models mean here."""
    return tomllib.loads(files("epochcast.measure.tables").joinpath("model_names.toml").read_text(encoding="utf-8"))


def bare_network(model: str) -> NamedNetwork | None:
    """A network that cannot be built, with what the list says about it."""
    entry = model_names()["bare"].get(model)
    if entry is None:
        return None
    parameters, uneven = float(entry["parameters"]), float(entry.get("uneven", 0.0))
    return NamedNetwork("", None, entry.get("tokens"), parameters=parameters, uneven=uneven)


def named_network(row: Row, source: str, model: str, batch_per_gpu: float) -> NamedNetwork:
    """By `detector_rows` for zoos of detectors, by the entry of the list, else by the name itself."""
    names = model_names()
    entries: Mapping[str, Any] = names.get("source", {}).get(source, {})
    _check_possible(source, model, is_mapped=model in entries)
    size = _row_size(row, batch_per_gpu)
    if source in FRAMEWORKS:
        detector = detector_row(source, model, batch_per_gpu, text(row, "input_shape"))
        units = batch_per_gpu / detector.images
        return NamedNetwork(
            detector.reference, detector.mean_shape, batch_units=units, largest_shape=detector.largest_shape
        )
    face = face_reference(model, text(row, "note"), count(row, "gpus") or 1)
    if face is not None:
        return NamedNetwork(face, size)
    if size is None and source in names["needs_input"] and model not in entries:
        raise UnknownSampleLength(f"{model}: the row does not say how many tokens a sample has")
    if model not in ZOO and count(row, "layers") and count(row, "hidden") and not _is_hugging_face(row, model):
        return NamedNetwork(_decoder(row), size, _length(size), is_sized=True)
    entry = entries.get(model) or _entry(model)
    if entry is None:
        prefix = names["prefix"].get(source)
        reference = f"{prefix}:{model}" if prefix else reference_of(model)
        is_sized = ModelReference.of(reference).prefix == SIZES
        return NamedNetwork(reference, size, _length(size), is_sized=is_sized)
    if isinstance(entry, str):
        return NamedNetwork(_as_run(entry, row), size, _length(size))
    return _from_entry(entry, row, model, size, batch_per_gpu)


def _as_run(reference: str, row: Row) -> str:
    """Experts in Hugging Face's own modules are products in a loop, unless the row names a library of kernels."""
    is_mixture = reference.startswith(f"{SIZES}:") and "experts=" in reference
    is_grouped = is_trainer("grouped_experts", text(row, "note"))
    return f"{reference},loop=1" if is_mixture and not is_grouped and _is_transformers(row) else reference


def _is_transformers(row: Row) -> bool:
    return is_trainer("hugging_face", text(row, "framework"))


def _is_hugging_face(row: Row, model: str) -> bool:
    """Whether the row runs Hugging Face's own module of a model that is known by name."""
    is_known = reference_of(model) in ZOO or is_hub_id(model)
    return is_known and _is_transformers(row)


def _entry(model: str) -> Any:
    """What the list has for any source; names may differ in punctuation and owner."""
    entries: Mapping[str, Any] = model_names()["any"]
    return entries.get(model) or (entries.get(_entry_names().get(squeezed(model), "")) if model not in ZOO else None)


def is_listed(source: str, model: str) -> bool:
    """Whether the list has a name, of this source or of any: as a network, or as one that cannot be built."""
    names = model_names()
    reasons = (*names["cannot"].values(), *names["cannot_source"].get(source, {}).values())
    of_source = model in names.get("source", {}).get(source, {})
    return of_source or _entry(model) is not None or any(model in listed for listed in reasons)


@remembered(1)
def _entry_names() -> Mapping[str, str]:
    return by_squeezed(model_names()["any"])


def _decoder(row: Row) -> str:
    """The reference of a language model whose sizes are in the row."""
    sizes = {name: count(row, name) for name in ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab")}
    style = model_names()["decoder_style"].get(text(row, "source"))
    return decoder_reference({**sizes, "style": style, "model": text(row, "model"), "note": text(row, "note")})


def _check_possible(source: str, model: str, *, is_mapped: bool) -> None:
    names = model_names()
    of_source = names["cannot_source"].get(source, {})
    error = _listed_error(of_source, model, model)
    if error is None and not is_mapped:
        error = _listed_error(names["cannot"], model, model)
        if error is None and model not in ZOO:
            error = _listed_error(of_source, "*", model)
    if error is not None:
        raise error


def _listed_error(section: Mapping[str, Mapping[str, str]], name: str, model: str) -> BadInput | None:
    """The error that the list has for a name; None where it has none."""
    for kind, reasons in section.items():
        if name in reasons:
            return UNBUILT[kind](f"{model}: {reasons[name]}")
    return None


def _from_entry(
    entry: Mapping[str, Any], row: Row, model: str, size: Shape | None, batch_per_gpu: float
) -> NamedNetwork:
    task = named_task(text(row, "task"))
    if "input" in entry and longest_sample(row) is not None:
        size = None  # the list knows more than a maximum
    if size and "latent" in entry:
        size = _latent(size, int(entry["latent"]))
    of_version = entry.get("input_of_version", {}).get(text(row, "framework_version"))
    shape = size or (tuple(of_version) if of_version else _default_size(entry, task, model, batch_per_gpu))
    reference = str(entry["model"] if size else entry.get("unshaped", entry["model"]))
    reference = str(entry.get("heads", {}).get(task, reference))
    tokens = entry.get("tokens") or _length(shape)
    return NamedNetwork(
        reference,
        shape,
        tokens,
        float(entry["tokens"]) if entry.get("batch_in_tokens") else 1,
        aux=bool(entry.get("aux", True)),
    )


def _latent(size: Shape, pixels: int) -> Shape:
    """The shape of the latent of a picture, 3x512x512 → 4x64x64; a shape of four channels is one already."""
    return size if len(size) != 3 or size[0] != 3 else (4, size[1] // pixels, size[2] // pixels)


def _default_size(entry: Mapping[str, Any], task: str | None, model: str, batch_per_gpu: float) -> Shape | None:
    """The size of a row that says none: by its batch, by the entry, or by the task."""
    if "inputs" in entry:
        shape = entry["inputs"].get(f"{batch_per_gpu:g}")
        if shape is None:
            raise UnknownImageSize(f"{model}: its input size is not known for a batch of {batch_per_gpu:g}")
        return tuple(shape)
    if "input" in entry:
        shape = tuple(entry["input"])
        return _batch_shape(shape, batch_per_gpu)
    tokens = row_names()["task_tokens"].get(task) if "heads" in entry else None
    return (int(tokens),) if tokens else None


def _length(shape: Shape | None) -> float | None:
    """Tokens of a sample, where a shape is a number of tokens."""
    return float(shape[0]) if shape and len(shape) == 1 else None


def _row_size(row: Row, batch_per_gpu: float) -> Shape | None:
    """The shape of a sample from `input_shape`, else from `sequence_length`."""
    size = read_size(text(row, "input_shape"))
    if size is None:
        length = count(row, "sequence_length") or longest_sample(row)
        return (length,) if length else None
    unit = text(row, "unit")
    if unit.casefold().startswith(("image", "img")):
        size = (3, *size, *size) if len(size) == 1 else size
    if len(size) == 2:
        size = (3, *size)
    return _batch_shape(size, batch_per_gpu)


def longest_sample(row: Row) -> int | None:
    """The maximum of a row that says no other length of its texts: seq<=512, "max 2048 (alpaca)"."""
    words = text(row, "input_shape").casefold()
    match = re.match(r"(?:seq ?<= ?|max )(\d+)\b", words)
    is_only = match is not None and read_size(words) is None and count(row, "sequence_length") is None
    return int(match[1]) if match is not None and is_only else None


def _batch_shape(size: Shape, batch_per_gpu: float) -> Shape:
    return mean_shape(size[1:2], size[2], max(1, int(batch_per_gpu))) if size == RESIZED else size


def read_size(words: str) -> Shape | None:
    """3x224x224, 512x512 px, seq512 or 512 tokens, "mean 210, max 768"; brackets behind sides do not count. None for
    other texts, such as 3x(320..608) or seq512 (unpadded), and for a mere maximum.
    """
    lower = words.strip().casefold()
    plain = re.sub(r"\s+\([^)]*\)$", "", lower).removesuffix(" px")
    if re.fullmatch(r"\d+(x\d+)*", plain):
        return parse_shape(plain)
    tokens = re.fullmatch(r"seq[a-z_ =]*(\d+)|(\d+) tokens|mean (\d+)\b.*", lower)
    return (int(next(filter(None, tokens.groups()))),) if tokens else None


def uneven_of(words: str) -> float:
    """How much sizes vary from batch to batch, from 3x(320..608); 0 for one size."""
    sides = re.search(r"\(\s*(\d+\s*\.\.\s*\d+)\s*\)", words)
    return parse_uneven(sides[1]) if sides else 0.0


def step_seconds(row: Row, samples: float, network: NamedNetwork) -> float:
    """step_seconds, else what a step counts / its rate: samples, tokens of all samples, or steps, by `unit`."""
    seconds = cells.seconds(row, "step_seconds")
    if seconds is None:
        rate = number(row, "samples_per_second")
        if rate is None:
            raise MissingCell("step_seconds", "samples_per_second")
        if rate <= 0:
            raise InvalidCell("samples_per_second", "above 0", f"{rate:g}")
        per_gpu = (count(row, "gpus") or 1) if is_per_gpu(text(row, "unit")) else 1
        seconds = _counted(row, samples, network) / (rate * per_gpu)
    cells.check_seconds(seconds, "step_seconds")
    return seconds


def _counted(row: Row, samples: float, network: NamedNetwork) -> float:
    """How many units of the throughput a step has."""
    unit = named_unit(text(row, "unit") or "samples")
    if unit == "steps":
        return 1.0
    counted = number(row, "global_batch") or samples * network.batch_units * (count(row, "grad_accum") or 1)
    if unit == "samples":
        return counted
    is_known = network.tokens is not None and (unit == "tokens" or network.parameters is not None)
    if not is_known or network.tokens is None:
        raise UnknownSampleLength(f"the throughput counts {unit} and the row does not say how many a sample has")
    return counted * network.tokens / network.batch_units


def family_of(model: str) -> str:
    """The leading word of a model's name, which is what its authors called the architecture: resnet50d → resnet.

    Used to split tables so that no relative of a tested network was trained on.
    """
    name = (
        model.casefold()
        .removeprefix("tf_")
        .removeprefix("adv_")
        .removeprefix("ens_adv_")
        .removeprefix("legacy_")
        .removeprefix("gluon_")
    )
    for prefix, family in model_names().get("family", {}).items():
        if name.startswith(prefix):
            return str(family)
    return re.split(r"[_\d\-.]", name, maxsplit=1)[0] or name
