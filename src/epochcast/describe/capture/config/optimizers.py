"""Optimizers by the names that frameworks give them, as those whose update is known here.

torch.optim.AdamW, adamw_torch_fused (Hugging Face), FusedAdam (DeepSpeed), keras.optimizers.Lion. Names of several
frameworks differ by case, underscores and what implements them; what is compared is the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from epochcast.describe.graph.optimizer import OPTIMIZERS
from epochcast.errors import UnknownName

FUSED = "fused"


@dataclass(frozen=True, slots=True)
class OptimizerMatch:
    """Our name, how it updates ("" where nothing is said), and what differs; `problem` where none of ours is near."""

    name: str
    style: str = ""
    note: str = ""
    problem: str = ""


# What is written → ours. The first of several that is known here counts; then a note says what it stands for.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "sgd": ("sgd",),
    "momentum": ("momentum",),
    "nesterov": ("nesterov",),
    "adam": ("adam",),
    "adamw": ("adamw",),
    "adamwtorch": ("adamw",),
    "adamwtorchfused": ("adamw",),
    "adamwtorchxla": ("adamw",),
    "adamwtorchnpufused": ("adamw",),
    "adamwhf": ("adamw",),
    "adamwapexfused": ("adamw",),
    "adamwanyprecision": ("adamw",),
    "adamwbf16": ("adamw",),
    "optimiadamw": ("adamw",),
    "optimilion": ("lion",),
    "distributedfusedadam": ("adamw",),
    "fusedadam": ("adamw",),
    "deepspeedcpuadam": ("adamw",),
    "fusedsgd": ("momentum",),
    "rmsprop": ("rmsprop",),
    "adagrad": ("adagrad",),
    "adadelta": ("adadelta",),
    "lamb": ("lamb",),
    "fusedlamb": ("lamb",),
    "adafactor": ("adafactor",),
    "lion": ("lion",),
    "lion32bit": ("lion",),
    "lion8bit": ("lion8bit", "lion"),
    "lionbnb8bit": ("lion8bit", "lion"),
    "pagedlion": ("paged_lion", "lion"),
    "pagedlion32bit": ("paged_lion", "lion"),
    "pagedlion8bit": ("paged_lion8bit", "lion8bit", "lion"),
    "fusedlion": ("lion",),
    "muon": ("muon",),
    "adam8bit": ("adam8bit",),
    "adamw8bit": ("adamw8bit",),
    "adamwbnb8bit": ("adamw8bit",),
    "adamwtorch8bit": ("adamw8bit",),
    "adamw32bit": ("adamw",),
    "pagedadam": ("paged_adam", "adam"),
    "pagedadam32bit": ("paged_adam", "adam"),
    "pagedadam8bit": ("paged_adam8bit", "adam8bit"),
    "pagedadamw": ("paged_adamw", "adamw"),
    "pagedadamw32bit": ("paged_adamw", "adamw"),
    "pagedadamw8bit": ("paged_adamw8bit", "adamw8bit"),
}
# Rules that are not in the table and keep the same state per parameter, with passes much alike.
_ALIKE: Mapping[str, str] = {
    "nadam": "adam",
    "radam": "adam",
    "stableadamw": "adamw",
    "grokadamw": "adamw",
    "schedulefreeadamw": "adamw",
    "adamwschedulefree": "adamw",
    "schedulefreesgd": "momentum",
    "adan": "adamw",
    "musgd": "momentum",
    "lionw": "lion",
    "adamax": "adam",
    "adabelief": "adam",
    "amsgrad": "adam",
    "onebitadam": "adam",
    "zerooneadam": "adam",
    "onebitlamb": "lamb",
    "ftrl": "adam",
    "asgd": "momentum",
    "lars": "momentum",
    "rprop": "adadelta",
}
# Rules with other state than the one they are taken as.
_UNLIKE: Mapping[str, tuple[str, str]] = {
    "prodigy": ("adamw", "which keeps half as much state"),
    "prodigyplusschedulefree": ("adamw", "which keeps less state"),
    "dadaptation": ("adamw", "which keeps less state"),
    "dadaptadam": ("adamw", "which keeps less state"),
    "dadaptlion": ("lion", "which keeps less state"),
    "ademamix": ("adamw", "which keeps two thirds of its state"),
    "adamwademamix": ("adamw", "which keeps two thirds of its state"),
    "soap": ("adamw", "which keeps less state and has no products of its own"),
    "came": ("adafactor", "which keeps less state"),
    "adammini": ("lion", "which keeps as much state"),
    "galoreadamw": ("adamw", "which keeps more state"),
    "galoreadamw8bit": ("adamw8bit", "which keeps more state"),
    "apolloadamw": ("adamw", "which keeps more state"),
    "qgaloreadamw8bit": ("adamw8bit", "which keeps more state"),
    "lomo": ("sgd", "which keeps gradients"),
    "adalomo": ("adafactor", "which keeps gradients"),
    "adamwtorch4bit": ("adamw8bit", "which keeps twice its state"),
}
_FUSED = ("adamwtorchfused", "adamwapexfused", "fusedadam", "fusedlamb", "fusedsgd", "fusedlion")


def match_optimizer(
    name: str, *, momentum: object = None, nesterov: object = None, is_fused: object = None
) -> OptimizerMatch:
    """The optimizer that a framework's name and arguments mean; an unknown one has a problem, with the near names."""
    key = name.rpartition(".")[2].casefold().replace("_", "").replace("-", "").replace(" ", "")
    style = FUSED if is_fused is True or key in _FUSED else ""
    if key in ("sgd", "fusedsgd") and momentum is not None:
        has_momentum = not isinstance(momentum, int | float) or momentum > 0
        return OptimizerMatch("sgd" if not has_momentum else "nesterov" if nesterov is True else "momentum", style)
    if key == "sgd" and nesterov is True:
        return OptimizerMatch("nesterov", style)
    candidates = [candidate for candidate in _NAMES.get(key, (key,)) if candidate in OPTIMIZERS]
    if candidates:
        exact = _NAMES.get(key, (key,))[0]
        note = "" if candidates[0] == exact else f"{name} is taken as {candidates[0]}"
        return OptimizerMatch(candidates[0], style, note)
    if key in _ALIKE:
        return OptimizerMatch(_ALIKE[key], style, f"{name} is taken as {_ALIKE[key]}, which keeps as much state")
    if key in _UNLIKE:
        ours, difference = _UNLIKE[key]
        return OptimizerMatch(ours, style, f"{name} is taken as {ours}, {difference}")
    return OptimizerMatch(name, problem=str(UnknownName("optimizer", name, OPTIMIZERS)))
