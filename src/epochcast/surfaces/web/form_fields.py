"""The form of the forecast page, made from the declared options of a job: one declaration, one form."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from epochcast.base.options import Option
from epochcast.surfaces.web.api_verbs import DRAW, NEIGHBOURS, VERBS

# What the page shows first, and the words for it.
MAIN: Mapping[str, str] = {
    "model": "Model",
    "device": "Device",
    "gpus": "GPUs",
    "batch": "Batch per GPU",
    "precision": "Precision",
    "dataset": "Data set",
    "epochs": "Epochs",
}
GROUPS: Mapping[str, str] = {
    "model": "Model",
    "recipe": "Training",
    "data": "Data and duration",
    "loader": "Loader",
    "generation": "Generation",
    "post-training": "Post-training",
    "place": "Hardware",
    "framework": "Framework",
}
# Shorter words than those of the command line, which has files, too.
HINTS: Mapping[str, str] = {
    "model": "A name such as resnet50, bert-base-uncased, meta-llama/Llama-3.1-8B, timm:NAME",
    "device": "A name such as A100, H100 or RTX 4090.",
    "gpus": "In all.",
    "batch": "Samples in a step.",
    "precision": "",
    "dataset": "Or give the samples instead.",
    "epochs": "",
}
# Asked by the page itself.
_OF_THE_PAGE = (DRAW.name, NEIGHBOURS.name)
# Lists of names beside a text: others are taken, too, such as V100 for one of its boards.
LISTS: Mapping[str, str] = {"model": "models", "device": "devices"}
# Sliders: by factors of two, up to 2^n.
SLIDERS: Mapping[str, int] = {"gpus": 9, "batch": 12}


@dataclass(frozen=True, slots=True)
class FormField:
    """One option as a part of the form."""

    name: str
    html: Markup


@dataclass(frozen=True, slots=True)
class FormGroup:
    """Options that belong together."""

    title: str
    fields: tuple[FormField, ...]


def flags() -> dict[str, str]:
    """How the command line spells options, by their names."""
    return {name: option.command_flag for name, option in VERBS["forecast"].options.items() if name not in _OF_THE_PAGE}


def main_fields() -> tuple[FormField, ...]:
    """What is asked first."""
    options = VERBS["forecast"].options
    return tuple(_field(options[name], label) for name, label in MAIN.items())


def more_groups() -> tuple[FormGroup, ...]:
    """Everything else, by what it is about."""
    rest = [option for name, option in VERBS["forecast"].options.items() if name not in (*MAIN, *_OF_THE_PAGE)]
    grouped = [
        FormGroup(title, _fields([option for option in rest if option.group == key])) for key, title in GROUPS.items()
    ]
    return tuple(group for group in grouped if group.fields)


def fields_of(verb: str, labels: Mapping[str, str], prefix: str = "option") -> tuple[FormField, ...]:
    """Named options of a verb, with words for them; `prefix` tells two forms of one page apart."""
    options = VERBS[verb].options
    return tuple(_field(options[name], label, prefix) for name, label in labels.items())


def _fields(options: Sequence[Option]) -> tuple[FormField, ...]:
    return tuple(_field(option, option.name.replace("_", " ")) for option in options if option.flag is not None)


def _field(option: Option, label: str, prefix: str = "option") -> FormField:
    own = f"{prefix}-{option.name}"
    hint = Markup('<p class="hint" id="hint-{}">{}</p>').format(own, HINTS.get(option.name, option.help))
    name = Markup('<label for="{}">{}</label>').format(own, label)
    return FormField(option.name, Markup('<div class="field">{}{}{}</div>').format(name, _input(option, own), hint))


def _input(option: Option, own: str) -> Markup:
    common = Markup('id="{0}" name="{1}" data-option="{1}" data-kind="{2}" aria-describedby="hint-{0}"').format(
        own, option.name, _kind(option)
    )
    choices = _CHOICES.get(option.name)
    if choices is not None:
        listed = Markup("").join(Markup("<option>{}</option>").format(choice) for choice in ("", *choices()))
        return Markup("<select {}>{}</select>").format(common, listed)
    if option.type is bool and not option.words:
        checked = Markup(" checked") if option.default else Markup("")
        return Markup('<input type="checkbox" {}{}>').format(common, checked)
    names = Markup(' list="{}" spellcheck="false"').format(LISTS[option.name]) if option.name in LISTS else Markup("")
    plain = "" if option.default in (None, (), False) else str(option.default)
    text = Markup('<input type="text" {}{} placeholder="{}" maxlength="2000">').format(common, names, plain)
    if option.name not in SLIDERS:
        return text
    number = Markup('<input type="number" {} min="1" placeholder="{}">').format(common, plain)
    slider = Markup(
        '<input type="range" min="0" max="{}" step="1" value="0" data-for="{}" data-scale="log2" aria-label="{}">'
    ).format(SLIDERS[option.name], own, f"{option.name}, by factors of two")
    return Markup('<div class="row">{}{}</div>').format(slider, number)


def _kind(option: Option) -> str:
    if option.type is int:
        return "integer"
    if option.type is float:
        return "text" if option.unit == "seconds" else "number"  # a time is read with its unit
    return "list" if option.type == tuple[str, ...] else "text"


def devices() -> list[str]:
    """Names of the catalogue."""
    from epochcast.hardware.catalogue import devices as all_devices

    return [device.name for device in all_devices()]


def _datasets() -> list[str]:
    from epochcast.describe.datasets import datasets

    return [dataset.name for dataset in datasets()]


def _precisions() -> list[str]:
    from epochcast.describe.graph.precision import ALIASES, PRECISIONS

    return [*(name for name in PRECISIONS if "+" not in name), *(name for name in ALIASES if name == "amp")]


def _optimizers() -> list[str]:
    from epochcast.describe.graph.optimizer import OPTIMIZERS

    return list(OPTIMIZERS)


_CHOICES: Mapping[str, Callable[[], list[str]]] = {
    "dataset": _datasets,
    "precision": _precisions,
    "optimizer": _optimizers,
}
