"""What decides the numbers of an answer, in one line above it, and what of it was assumed, in one line below."""

from collections.abc import Callable, Sequence
from typing import Any

from rich.text import Text

from epochcast.describe.graph.adapters import IA3, LABELS, PREFIX
from epochcast.describe.graph.precision import OF_HALF_WEIGHTS
from epochcast.describe.graph.quantised_base import BASES
from epochcast.predict.forecast.forecast import Forecast
from epochcast.units import show_count, show_gpus

_PRECISIONS = {"amp_bf16": "bf16 mixed precision", "amp_fp16": "fp16 mixed precision"}


def header(begin: Sequence[str], *answers: Forecast, between: str = " or ") -> str:
    """The title of an answer: how it begins, then the settings of its forecasts; what differs is written `between`."""
    each = [_settings(answer) for answer in answers]
    words = (between.join(dict.fromkeys(word for word in place if word)) for place in zip(*each, strict=True))
    return " · ".join([*begin, *(word for word in words if word)])


def place(answer: Forecast) -> str:
    """The model and what it runs on."""
    where = answer.device if answer.gpus == 1 else show_gpus(answer.device, answer.gpus, answer.nodes)
    return f"{answer.model} on {where}"


def _settings(answer: Forecast) -> tuple[str, ...]:
    """A word for each setting, empty where it is the plain one."""
    is_kept_otherwise = answer.weights not in (None, answer.precision)
    return (
        f"{answer.sequence_length:,} tokens{', packed' if answer.packing else ''}" if answer.sequence_length else "",
        answer.contents,
        OF_HALF_WEIGHTS.get(answer.precision, answer.precision),
        f"weights {answer.weights}" if is_kept_otherwise else "",
        answer.optimizer if answer.mode == "training" else answer.mode.replace("_", " and ") + " only",
        f"{answer.offload} offloaded" if answer.offload != "none" else "",
        _CHECKPOINTING[answer.checkpointing],
        _lora(answer),
        ", ".join(filter(None, (f"{answer.attention} attention" if answer.attention else "", answer.attention_window))),
        "channels last" if answer.channels_last else "",
        f"{answer.kernels.capitalize()} kernels" if answer.kernels != "none" else "",
        _compiled(answer),
        _experts(answer),
    )


def _compiled(answer: Forecast) -> str:
    if answer.compile == "none":
        return ""
    return f"compiled: {answer.compile}" + (", eager loss" if answer.eager_loss else "")


def _experts(answer: Forecast) -> str:
    """How many tokens an expert gets, where that is not as many as all others."""
    if answer.expert_capacity is not None:
        return f"expert capacity {answer.expert_capacity:g}"
    return f"busiest experts {answer.expert_imbalance:g}× the mean" if answer.expert_imbalance > 1 else ""


_CHECKPOINTING = {
    "none": "",
    "full": "checkpointing",
    "selective": "selective checkpointing",
    "half": "checkpointing of every second block",
    "operators": "checkpointing by operators",
}


def _lora(answer: Forecast) -> str:
    if not answer.lora:
        return ""
    layers = f" on {', '.join(answer.lora_targets)}" if answer.lora_targets else ""
    size = {IA3: "", PREFIX: f" of {answer.lora} tokens"}.get(answer.adapter, f" rank {answer.lora}")
    trained = f", {show_count(answer.trainable_parameters)} trained" if answer.trainable_parameters else ""
    return f"{LABELS[answer.adapter]}{size}{layers}{trained}{_base(answer)}"


def _base(answer: Forecast) -> str:
    """How the frozen weights are kept, and the rest."""
    base = BASES.get(answer.quantize)
    if base is None:
        return ""
    return f", {base.label}, embeddings, norms and head {answer.weights}"


def assumed_line(*answers: Forecast) -> str:
    """assumed: bf16 mixed precision, adamw, 512 tokens (alpaca); empty where everything was said."""
    words = [_assumed(answer) for answer in answers]
    names = sorted({name for each in words for name in each}, key=_ORDER.index)
    values = [" or ".join(dict.fromkeys(each[name] for each in words if name in each)) for name in names]
    return f"assumed: {', '.join(values)}" if values else ""


_ORDER = ("precision", "weights", "optimizer", "input_shape", "lengths", "workers")


def assumed(*answers: Forecast) -> list[Text]:
    """The same as a piece of a drawing; none where there is nothing to say."""
    line = assumed_line(*answers)
    return [Text(line)] if line else []


def _assumed(answer: Forecast) -> dict[str, str]:
    shown: dict[str, Callable[[Any], str]] = {
        "precision": _precision,
        "weights": lambda name: f"base in {name}",
        "input_shape": lambda shape: _length(shape, answer.dataset),
        "lengths": lambda lengths: _texts(lengths, answer.dataset),
        "workers": lambda workers: f"{workers} data loader workers per GPU",
    }
    return {name: shown.get(name, str)(value) for name, value in answer.assumed.items()}


def _precision(name: str) -> str:
    return _PRECISIONS.get(name, name)


def _texts(written: str, dataset: str | None) -> str:
    """How long texts are on average, and what is done with short ones."""
    from epochcast.predict.forecast.lengths import PACKED, lengths_in

    lengths = lengths_in(written)
    most = "" if lengths.way == PACKED else f", at most {lengths.most:,}"
    return f"{lengths.way}: {lengths.mean:,.0f} tokens a text on average{most}" + (f" ({dataset})" if dataset else "")


def _length(shape: Sequence[int], dataset: str | None) -> str:
    """So many tokens, and who says so."""
    from epochcast.describe.datasets import find_dataset

    data = None if dataset is None else find_dataset(dataset)
    is_of_data = data is not None and not data.counts_tokens and list(data.sample_shape) == list(shape)
    return f"{shape[0]:,} tokens ({dataset if is_of_data else 'model default'})"
