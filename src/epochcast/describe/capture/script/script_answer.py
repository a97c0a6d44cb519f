"""The error for a script without a function: what is missing, what the script holds, and what to write next."""

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from epochcast.describe.capture.hub import is_hub_id
from epochcast.describe.capture.model_reference import ModelReference
from epochcast.describe.capture.script.image_size import image_shape, published_shape
from epochcast.describe.capture.script.script_models import ScriptNames
from epochcast.describe.capture.script.script_names import KERAS, PYTORCH
from epochcast.describe.capture.script.script_search import (
    MAIN_GUARD,
    UNKNOWN_ARGUMENTS,
    ModelCandidate,
    Script,
    read_script,
)
from epochcast.describe.capture.script.script_statements import all_names
from epochcast.describe.capture.script.syntax_tree import syntax_tree
from epochcast.errors import BadInput

MOST_LISTED = 12
MOST_OFFERED = 3
LONGEST_CALL = 200
"""A longer call is not repeated in a message."""

_LOOKED_FOR = (
    "looked for classes that derive from nn.Module, LightningModule, PreTrainedModel or keras.Model, "
    "for functions that return a model and for variables that hold one"
)
_FACTORY_NAMES = ("make_model", "make_the_model", "model_to_forecast")
_LIBRARIES = ("timm", "torchvision", "keras", "tensorflow", "tf_keras")
# Their functions fetch ImageNet's weights where nothing is said.
_KERAS_NETWORKS = ("keras.applications.", "tensorflow.keras.applications.", "tf_keras.applications.")
# A file that uses one of these may define names that do not appear in it.
_MAKES_NAMES = ("*", "globals", "__getattr__", "exec", "setattr", "vars")


class NeedsFactory(BadInput):
    """A script, or a name that is not in it, where a function that makes a model is needed.

    Its notes are its `lines`: what the script holds, and references that work instead of `reference`, the user's; the
    command line shows each as a whole command. `settings_file` is the script if it has training
    settings, `stated_options` are their options. `input_shape` is the size of its images, `published_shape` that of its
    published network; `missing` are words that a command still needs, with an example of each.
    """

    reference: str = ""
    lines: "tuple[ScriptLine, ...]" = ()
    settings_file: str = ""
    stated_options: frozenset[str] = frozenset()
    input_shape: tuple[int, ...] | None = None
    published_shape: tuple[int, ...] | None = None
    missing: tuple[str, ...] = ()
    candidates: tuple[ModelCandidate, ...] = ()

    @property
    def instead(self) -> tuple[str, ...]:
        """The references that work."""
        return tuple(line.text for line in self.lines if line.is_reference)


@dataclass(frozen=True, slots=True)
class ScriptLine:
    """A line of the error; a reference is one that the user can give instead."""

    text: str
    is_reference: bool = False

    def __str__(self) -> str:
        return f"    {self.text}" if self.is_reference else self.text


def script_without_factory(reference: str) -> NeedsFactory:
    """The error for `train.py` alone."""
    script = read_script(Path(reference))
    message = f"{script.path.name} is a script, and a forecast needs the function that makes its model"
    return _answer(NeedsFactory(message), reference, reference, script, script.candidates)


def name_not_in_script(reference: str) -> NeedsFactory | None:
    """The error for `train.py:NAME` if the file cannot have that name; None if it may have it or cannot be read."""
    parts = ModelReference.of(reference)
    place, name = parts.script, parts.factory.partition(".")[0]
    try:
        tree = syntax_tree(Path(place))
        if not {name, *_MAKES_NAMES}.isdisjoint(all_names(tree)):
            return None
        script = read_script(Path(place))
    except BadInput:
        return None  # the error is raised when the file is run
    near = get_close_matches(name, [candidate.name for candidate in script.candidates], n=3)
    nearest_first = sorted(script.candidates, key=lambda c: near.index(c.name) if c.name in near else len(near))
    return _answer(NeedsFactory(f"{script.path.name} has no {name!r}"), reference, place, script, nearest_first)


def _answer(
    error: NeedsFactory, reference: str, place: str, script: Script, candidates: Sequence[ModelCandidate]
) -> NeedsFactory:
    lines = [*_candidate_lines(script, candidates), *_advice_lines(place, script, candidates)]
    for line in lines:
        error.add_note(str(line))
    error.reference, error.candidates = reference, tuple(candidates)
    error.lines = tuple(lines)
    error.stated_options = frozenset(setting.option for settings in script.settings for setting in settings.settings)
    best = candidates[0] if candidates else None
    if best is not None and best.framework == PYTORCH:
        error.input_shape = image_shape(syntax_tree(script.path), script.script_names)
        error.published_shape = published_shape(best.reference)
    error.settings_file = place if any(settings.settings for settings in script.settings) else ""
    return error


# ---- what is there ------------------------------------------------------------------------------


def _candidate_lines(script: Script, candidates: Sequence[ModelCandidate]) -> Iterator[ScriptLine]:
    if not candidates:
        yield ScriptLine(f"no model was found in it: {_LOOKED_FOR}")
    else:
        yield ScriptLine("found in it, without running it:")
    listed = candidates[:MOST_LISTED]
    width = max((len(str(candidate.line)) for candidate in listed), default=0)
    for candidate in listed:
        yield ScriptLine(f"  line {candidate.line:>{width}}  {_described(candidate)}")
    if len(candidates) > len(listed):
        yield ScriptLine(f"  and {len(candidates) - len(listed)} more")
    for settings in script.settings:
        stated = sorted(
            f"{setting.option} {setting.value} ({'its default' if setting.is_default else setting.key})"
            for setting in settings.settings
        )
        speaker = "it" if settings.name == script.path.name else settings.name
        if stated:
            yield ScriptLine(f"{speaker} also says: {', '.join(stated)}")
        yield from (ScriptLine(f"{speaker}: {note}") for note in settings.notes)


def _described(candidate: ModelCandidate) -> str:
    remarks = []
    if candidate.needs == UNKNOWN_ARGUMENTS:
        remarks.append("its arguments are in another file")
    elif candidate.needs:
        remarks.append(f"needs {_listed(candidate.needs)}")
    if candidate.inside:
        remarks.append(
            "below " + MAIN_GUARD.rstrip(":") if candidate.inside == MAIN_GUARD else f"inside {candidate.inside}"
        )
    if candidate.is_trained:
        remarks.append("trained here")
    elif candidate.is_part:
        remarks.append("a part of other classes")
    return ", ".join([f"{candidate.kind} {candidate.name} ({candidate.framework})", *remarks])


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


# ---- what to do next ----------------------------------------------------------------------------


def _advice_lines(place: str, script: Script, candidates: Sequence[ModelCandidate]) -> Iterator[ScriptLine]:
    elsewhere = _files_of(script)
    if not candidates and elsewhere:
        (file, line), *_ = elsewhere
        yield ScriptLine(f"its model comes from another file (line {line}); give that file:")
        yield ScriptLine(file, is_reference=True)
        return
    offered = list(_published_lines(script, candidates))
    yield from offered
    best = candidates[0] if candidates else None
    if best is None and offered:
        return
    also = "or" if offered else "so"
    guard = list(_guard_lines(script))
    yield from guard
    if best is not None and best.is_ready:
        ready = [c for c in candidates if c.is_ready and (c.is_trained, c.is_part) == (best.is_trained, best.is_part)]
        yield ScriptLine(
            "then type:" if guard else f"{also} type{', the most likely first' if len(ready) > 1 else ''}:"
        )
        for candidate in ready[:MOST_OFFERED]:
            yield ScriptLine(f"{place}:{candidate.name}", is_reference=True)
    else:
        name = next((name for name in _FACTORY_NAMES if name not in script.names), "make_this_model")
        yield ScriptLine(f"{also} add a function that makes the model and does not train it:")
        yield from (ScriptLine(f"    {line}") for line in _factory_lines(name, script, best))
        yield ScriptLine("and type:")
        yield ScriptLine(f"{place}:{name}", is_reference=True)
    if best is not None and best.framework == KERAS and (guard or not best.is_ready):
        yield ScriptLine("or save the model once with model.save('model.keras') and type:")
        yield ScriptLine(str(Path(place).with_name("model.keras")), is_reference=True)


def _published_lines(script: Script, candidates: Iterable[ModelCandidate]) -> Iterator[ScriptLine]:
    """References to published networks that the script uses."""
    references = dict.fromkeys(candidate.reference for candidate in candidates if candidate.reference)
    references |= dict.fromkeys(name for name in script.checkpoints if is_hub_id(name))
    if references:
        yield ScriptLine("the published network does not need the script; type:")
    for reference in list(references)[:MOST_OFFERED]:
        yield ScriptLine(reference, is_reference=True)
    for name, line in [each for each in script.checkpoints.items() if each[0] not in references][:1]:
        yield ScriptLine(
            f"{name!r} (line {line}) needs only its config.json from Hugging Face, no weights; put it here and type:"
        )
        yield ScriptLine("hf:config.json", is_reference=True)


def _guard_lines(script: Script) -> Iterator[ScriptLine]:
    if not script.on_import:
        return
    actions = " and ".join(f"{action.does} (line {action.line}: {action.text})" for action in script.on_import)
    yield ScriptLine(
        f"{script.path.name} {actions} as soon as it is imported; first put that, and what needs it, below:"
    )
    yield ScriptLine(f"    {MAIN_GUARD}")


def _factory_lines(name: str, script: Script, candidate: ModelCandidate | None) -> Iterator[str]:
    """The lines of a function to add: with the script's call if all its arguments are known, else with dots."""
    yield f"def {name}():"
    if candidate is None:
        yield "    return ...  # an nn.Module or a Keras model"
        return
    for call in candidate.calls:
        text = _written(call, script)
        if text is not None:
            yield f"    return {text}  # as in line {call.lineno}"
            return
    if candidate.needs and not candidate.inside:
        dots = ["..."] if candidate.needs == UNKNOWN_ARGUMENTS else [f"{argument}=..." for argument in candidate.needs]
        yield f"    return {candidate.name}({', '.join(dots)})  # replace the dots by the values it is trained with"
        return
    place = "the lines" if candidate.inside == MAIN_GUARD else f"the lines of {candidate.inside}"
    yield f"    ...  # {place} that make it, up to line {candidate.end_line}"
    yield f"    return {candidate.name.rpartition('.')[2]}{'()' if candidate.kind != 'variable' else ''}"


def _written(call: ast.Call, script: Script) -> str | None:
    """A call that works at the top of the file, with defaults for options; None if it needs other variables."""
    substituted = _WithoutWeights(script).visit(_WithConstants(script).visit(deepcopy(call)))
    names = [node for node in ast.walk(substituted) if isinstance(node, ast.Name)]
    bound_names = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    if any(node.id not in bound_names | script.top and not hasattr(builtins, node.id) for node in names):
        return None
    text = ast.unparse(substituted)
    return text if len(text) <= LONGEST_CALL and "\n" not in text else None


class _WithConstants(ast.NodeTransformer):
    """Replaces constants of the script and options of its command line by their values."""

    def __init__(self, script: Script) -> None:
        self.script_names: ScriptNames = script.script_names
        self.top = script.top

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = None if node.id in self.top else self.script_names.value(node)
        return node if value is None else ast.Constant(value)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        is_option = isinstance(node.value, ast.Name) and node.value.id not in {"self", *self.top}
        value = self.script_names.value(node) if is_option else None
        return self.generic_visit(node) if value is None else ast.Constant(value)


class _WithoutWeights(ast.NodeTransformer):
    """Calls that would fetch weights, without them: pretrained=True becomes False, weights of a library None."""

    def __init__(self, script: Script) -> None:
        self.script_names = script.script_names

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        dotted = self.script_names.imports.dotted(node.func) or ""
        is_library = dotted.partition(".")[0] in _LIBRARIES
        for keyword in node.keywords:
            if keyword.arg == "pretrained":
                keyword.value = ast.Constant(False)
            elif keyword.arg in ("weights", "weights_backbone") and is_library:
                keyword.value = ast.Constant(None)
        is_named = dotted == "timm.create_model" and len(node.args) > 1
        place = 1 if is_named else 0
        if is_library and len(node.args) > place and _is_true(node.args[place]):  # resnet50(True)
            node.args[place] = ast.Constant(False)
        if dotted.startswith(_KERAS_NETWORKS) and not any(k.arg == "weights" for k in node.keywords):
            node.keywords.append(ast.keyword("weights", ast.Constant(None)))
        return node


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _files_of(script: Script) -> list[tuple[str, int]]:
    """Files beside the script that a trained model is imported from."""
    files = []
    for module, line in script.modules.items():
        place = script.path.parent.joinpath(*module.lstrip(".").split("."))
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.is_file():
                files.append((str(path), line))
                break
    return files
