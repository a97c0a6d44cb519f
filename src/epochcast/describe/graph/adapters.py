"""Adapters by name, the layers each trains by default, and how layers are named.

    lora     y = W x + (α/r) B A x                                     Hu et al. 2021
    dora     the same, each row of W + (α/r) B A at a length that is trained    Liu et al. 2024
    loha     W + (A₁B₁) ∘ (A₂B₂)                                       Hyeon-Woo et al. 2022
    lokr     W + C ⊗ (A B)                                             Yeh et al. 2024 (LyCORIS)
    ia3      y = l ∘ W x, or W (l ∘ x) in front of the last product of an MLP       Liu et al. 2022
    prefix   trained keys and values in front of every layer's         Li & Liang 2021

A *target* is the end of a layer's path: `q_proj`, `to_out.0`; or a pattern of whole paths, as in PEFT:
`.*(self_attn|mlp).*_proj`.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches

from epochcast.errors import BadInput, UnknownName

LORA, DORA, LOHA, LOKR, IA3, PREFIX = "lora", "dora", "loha", "lokr", "ia3", "prefix"
USUAL_RANKS: Mapping[str, int] = {LORA: 0, DORA: 8, LOHA: 8, LOKR: 8, IA3: 1, PREFIX: 20}
"""Ranks where none is given: the defaults of PEFT; LoRA asks for its rank. IA3 has none, prefix tuning has tokens."""
LABELS: Mapping[str, str] = {LORA: "LoRA", DORA: "DoRA", LOHA: "LoHa", LOKR: "LoKr", IA3: "IA3", PREFIX: "prefix"}

_OF_PATTERNS = frozenset("[](){}|*+?^$\\")
MOST_OF_PATTERN, MOST_REPEATS = 500, 6
"""Characters of a pattern, and how many of its parts may repeat: matching takes a power of the length of a path."""
_REPEATED_GROUP = re.compile(r"\)[*+{]")
MOST_NAMES = 12
"""Of layers in a message; of more, only those near the one that was given."""
ALL_LINEAR = "all-linear"
"""A target that stands for every linear layer but the one that scores a vocabulary, as in PEFT."""
DEFAULT_TARGETS = ("q_proj", "v_proj", "query", "value", "q", "v", "c_attn", "query_key_value", "qkv_proj")
"""The attention projections of the usual families, which is where the paper puts the updates."""
_OTHER_DEFAULTS = (
    ("to_q", "to_k", "to_v", "to_out.0"),  # training scripts of diffusers
    ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj"),  # latent attention
    ("qkv", "in_proj", "qkv_net", "Wqkv"),  # one product for queries, keys and values
)
_SCALED = ("k_proj", "v_proj", "key", "value", "k", "v", "c_attn", "query_key_value", "qkv_proj")
_SCALED_BEFORE = ("down_proj", "wo", "mlp.c_proj", "dense_4h_to_h", "output.dense", "fc2", "w2")
"""IA3 scales keys and values, and what the last product of an MLP reads (PEFT's tables of target modules)."""
_MARKS = ("lora_", "hada_", "lokr_", "ia3_")


class NoSuchLayer(BadInput):
    """A target of an adapter that no linear layer has."""


def find_adapter(name: str) -> str:
    """An adapter by its name."""
    wanted = name.strip().casefold()
    if wanted not in USUAL_RANKS:
        raise UnknownName("adapter", name, USUAL_RANKS)
    return wanted


def is_scaled_before(path: str) -> bool:
    """Whether IA3 scales what a layer reads."""
    return any(_is_named(path, target) for target in _SCALED_BEFORE)


def is_pattern(target: str) -> bool:
    """Whether a target is a regular expression."""
    return not _OF_PATTERNS.isdisjoint(target)


def target_names(written: str | Sequence[str]) -> tuple[str, ...]:
    """Targets as a trainer's file has them: a pattern, a text with commas or spaces, or a list; of paths the end."""
    if isinstance(written, str):
        if is_pattern(written):
            return (written,)
        written = written.replace(",", " ").split()
    return tuple(dict.fromkeys(each if is_pattern(each) else each.rpartition(".")[2] for each in map(str, written)))


def matched(
    targets: Sequence[str], paths: Iterable[str], without_head: Collection[str], adapter: str = LORA
) -> set[str]:
    """The paths of the target layers; an error names every given target that the model does not have, and near names.

    Every target that is given must be a layer; of the default ones a model has those of its family. `without_head` is
    what `all-linear` stands for.
    """
    layers = tuple(paths)
    paths_of = {
        target: set(filter(_pattern(target).fullmatch, layers))
        if is_pattern(target)
        else {path for path in layers if _is_named(path, target)}
        for target in targets
        if target != ALL_LINEAR
    }
    absent = sorted(target for target, those in paths_of.items() if not those)
    if absent:
        raise _no_layer(absent, layers)
    if targets:
        every = set(without_head) if ALL_LINEAR in targets else set()
        return every.union(*paths_of.values())
    for names in (_SCALED + _SCALED_BEFORE,) if adapter == IA3 else (DEFAULT_TARGETS, *_OTHER_DEFAULTS):
        usual = {path for path in layers if any(_is_named(path, name) for name in names)}
        if usual:
            return usual
    raise _no_layer(sorted(DEFAULT_TARGETS), layers)


def _pattern(target: str) -> re.Pattern[str]:
    """A target compiled; one that could take long is refused."""
    unbounded = sum(target.count(sign) for sign in "*+{")
    if len(target) > MOST_OF_PATTERN or unbounded > MOST_REPEATS or _REPEATED_GROUP.search(target):
        raise BadInput(f"the pattern {target!r} repeats too much: give the layers by their last names")
    try:
        return re.compile(target)
    except re.error as problem:
        raise BadInput(f"{target!r} is not a pattern of layers: {problem}") from problem


def _is_named(path: str, target: str) -> bool:
    return path == target or path.endswith(f".{target}")


def _no_layer(absent: Sequence[str], paths: Sequence[str]) -> NoSuchLayer:
    linear = sorted({path.rpartition(".")[2] for path in paths})
    near = sorted({name for target in absent for name in get_close_matches(target, linear, n=3, cutoff=0.5)})
    is_near = bool(near) and len(linear) > MOST_NAMES
    offer = f"near: {', '.join(near)}" if is_near else f"the model has: {', '.join(linear) or 'none'}"
    return NoSuchLayer(f"no linear layer is called {', '.join(absent)}; {offer}")


def adapted_layers(layers: Iterable[str]) -> tuple[str, ...]:
    """The last names of the layers with an update, by the paths of all that is trained, each once."""
    names: dict[str, None] = {}
    for layer in layers:
        path = layer.split(".")
        place = next((i for i, part in enumerate(path) if part.startswith(_MARKS)), 0)
        if place:
            last = path[place - 1]
            names[f"{path[place - 2]}.{last}" if last.isdecimal() and place > 1 else last] = None
    return tuple(names)
