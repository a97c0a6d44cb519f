"""A PyTorch module as a `Model`: captured at two batch sizes, then resized and rewritten without running again.

It is captured in float32, or in half where the step is stored in half (`stored`); one that does not run in half is
captured in float32 and rewritten.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import torch

from epochcast.base.caching import Cache
from epochcast.describe.capture.torch.capture_lock import ALONE
from epochcast.describe.capture.torch.example_arguments import Example
from epochcast.describe.capture.torch.meta_steps import (
    Captured,
    How,
    Loss,
    derived_update,
    parameters_of,
    recorded_update,
    run,
)
from epochcast.describe.capture.torch.module_lora import with_lora
from epochcast.describe.capture.torch.peft_adapters import with_adapter
from epochcast.describe.capture.torch.small_values import Values
from epochcast.describe.capture.torch.stored_weights import (
    FOLLOW_WEIGHTS,
    WIDE,
    example_in,
    half_of,
    packed_notes,
    stored_as_half,
    stored_in,
)
from epochcast.describe.capture.torch.user_step import Step
from epochcast.describe.graph.adapters import LABELS, LORA
from epochcast.describe.graph.half_precision import stored_as
from epochcast.describe.graph.op import Graph, Op, Parameter, Phase
from epochcast.describe.graph.op_kinds import OptimizerUpdate, View
from epochcast.describe.graph.quantised_base import OF_BITS, with_packed
from epochcast.describe.graph.rebatch import Template
from epochcast.describe.graph.recipe import OFFLOADS, Recipe
from epochcast.describe.graph.tensor import DType, grad
from epochcast.describe.graph.trace import LARGE_BATCH, SMALL_BATCH, Trace
from epochcast.describe.graph.training import as_recipe_keeps, as_recipe_stores
from epochcast.errors import BadInput, EpochcastError

_FORWARD, _TRAINING = Recipe(1, mode="forward"), Recipe(1)
# Equal ops in one module that make a loop; no layer that is written out has as many.
_LEAST_LOOP = 48


class Pair(NamedTuple):
    """A step at the two sizes, without an update that is not its own; `half` is what the module ran in, where that was
    not its own format.
    """

    small: Captured
    large: Captured
    half: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(eq=False)
class TorchModel:
    """A module on `meta` and its example inputs. Captures are cached: only a new recipe runs the module.

    `loss` takes the module's result (and the batch) and gives the number to differentiate (chosen by shape where there
    is none). `step` runs a whole step instead, on `passed`: the module, or the modules that it holds.
    `grad_scaler` adds the pass that unscales gradients and looks for infinities, for amp_fp16. `around` is a context
    in which the module runs. `packed`: weights that it keeps in few bits, and in how many. `contents`: what is in a
    sample besides text. `tower`: a module that reads it, which trainers freeze.
    """

    name: str
    module: torch.nn.Module
    example: Example
    loss: Loss | None = None
    step: Step | None = None
    passed: Any = None
    values: Values = field(default_factory=Values, repr=False)
    grad_scaler: bool = False
    unit: str = "samples"
    units_per_sample: int = 1
    notes: tuple[str, ...] = ()
    around: Callable[[], AbstractContextManager[None]] = nullcontext
    packed: tuple[tuple[str, int], ...] = ()
    contents: str = ""
    tower: str = ""
    _facts: Cache[str, Any] = field(init=False, repr=False, default_factory=partial(Cache, 2))
    _pairs: Cache[Recipe, Pair] = field(init=False, repr=False, default_factory=partial(Cache, 8))
    _traces: Cache[Recipe, Trace] = field(init=False, repr=False, default_factory=partial(Cache, 32))

    def parameters(self, freeze: Sequence[str] = ()) -> tuple[Parameter, ...]:
        """Parameters by state-dict name; those that match a `freeze` pattern are not trainable."""
        parameters: tuple[Parameter, ...] = self._facts.get("parameters", lambda: parameters_of(self.module))
        return Graph(self.name, 1, (), (), parameters, ()).frozen(freeze).parameters if freeze else parameters

    def graph(self, batch: int) -> Graph:
        """The forward pass at a batch size."""
        small, large = (captured.forward for captured in self._forward_pair()[:2])
        template = Template.learn(_with_ends(small), SMALL_BATCH, _with_ends(large), LARGE_BATCH)
        *ops, ends = template.ops(batch)
        return Graph(
            self.name, batch, ends.inputs, tuple(ops), self.parameters(), ends.outputs,
            unit=self.unit, units_per_sample=self.units_per_sample, notes=(*self.notes, *small.notes),
        )  # fmt: skip

    def trace(self, recipe: Recipe) -> Trace:
        """The captured step. Another batch size or precision of it runs nothing."""
        if recipe.expert_capacity is not None:
            raise BadInput("a captured model dispatches its tokens by its own code: leave `expert_capacity` out")
        if self.stored is not None and recipe.precision in FOLLOW_WEIGHTS and not recipe.widens_rest:
            recipe = replace(recipe, precision=self.stored)
        key = replace(recipe.at(1).eager(), offload=OFFLOADS[0])
        trace = self._traces.get(key, lambda: self._adapted(key) if recipe.lora else self._trace(key))
        return trace.under(recipe)

    def _forward_pair(self) -> Pair:
        """Captures with the forward pass: a training step is asked for next, so it is captured at once."""
        try:
            return self._captured(_TRAINING)
        except EpochcastError:
            return self._captured(_FORWARD)

    @property
    def stored(self) -> str | None:
        """The half that its weights are kept in."""
        half: str | None = self._facts.get("stored", lambda: stored_in(self.module))
        return half

    def _adapted(self, recipe: Recipe) -> Trace:
        """The step of a copy of the module with low-rank updates."""
        if self.step is not None:
            raise BadInput("`lora` changes a module, not a step of your own: put the adapters into the model")
        module = deepcopy(self.module)
        if recipe.adapter != LORA:
            return self._adapted_by_peft(module, recipe)
        layers = [(module.get_submodule(name.removesuffix(".weight")), bits) for name, bits in self.packed]
        module = with_lora(module, recipe.lora, recipe.lora_targets, dropout=recipe.lora_dropout)
        # A layer with an update beside it has another name than before.
        packed = tuple(
            (f"{path}.weight", bits) for path, part in module.named_modules() for layer, bits in layers if part is layer
        )
        return replace(self, module=module, packed=packed)._trace(recipe)

    def _adapted_by_peft(self, module: torch.nn.Module, recipe: Recipe) -> Trace:
        """The step of a copy of the module that PEFT has changed."""
        if self.packed:
            label = LABELS[recipe.adapter]
            raise BadInput(
                f"{label} on weights that the model itself keeps in few bits is not modelled: use --quantize"
            )
        module = with_adapter(module, recipe.adapter, recipe.lora, recipe.lora_targets, recipe.lora_dropout)
        return replace(self, module=module)._trace(recipe)

    def _trace(self, recipe: Recipe) -> Trace:
        parameters = self.parameters(recipe.freeze)
        small, large, half, why = self._captured(recipe)
        if half == WIDE:
            parameters = tuple(replace(p, tensor=replace(p.tensor, dtype=DType.FLOAT32)) for p in parameters)
        update = () if small.has_updated else derived_update(parameters, recipe)
        recorded = () if small.has_updated else self._update(small, recipe, half)
        tail = (*self._unscaled(recipe, parameters), *update)
        if half not in (None, WIDE) and not recipe.precision_rules.is_autocast:
            tail = tuple(stored_as(tail, recipe.precision_rules.weights.parameters))
        joined = [_joined((*c.ops, *recorded), tail) for c in (small, large)]
        frozen = {parameter.name for parameter in parameters if not parameter.trainable}
        packed = {name: bits for name, bits in self.packed if name in frozen}
        if packed:
            formats = {name: OF_BITS[bits] for name, bits in packed.items()}
            joined = [with_packed(ops, formats) for ops in joined]
        is_stored = (half or self.stored) == half_of(recipe.precision_rules) is not None
        steps = [as_recipe_stores(ops, parameters, recipe, is_stored=is_stored) for ops in joined]
        steps = [as_recipe_keeps(ops, parameters, self.name, recipe) for ops in steps]
        template = Template.learn(steps[0], SMALL_BATCH, steps[1], LARGE_BATCH)
        sample = tuple(replace(t, shape=(1, *t.shape[1:])) for t in small.inputs)
        if self.tower and not (recipe.freeze or recipe.lora) and recipe.mode == "training":
            why = (
                *why,
                f"The vision tower is trained, too; LLaVA, LLaMA-Factory and ms-swift freeze it: "
                f"--freeze '*{self.tower}*'",
            )
        notes = (*self.notes, *why, *small.notes, *scan_notes(small.ops), *packed_notes(packed.items()))
        about = self.unit, self.units_per_sample, notes, self.contents
        return Trace(self.name, recipe, template, parameters, sample, *about)

    def _captured(self, recipe: Recipe) -> Pair:
        """The step at the two sizes, in the half that it is stored in if it runs in that, else in float32."""
        half = half_of(recipe.precision_rules) if self.stored is None else WIDE if recipe.widens_rest else None
        single = _as_run(recipe)
        if half is None:
            return self._pairs.get(single, lambda: self._capture(single))
        try:
            return self._pairs.get(replace(single, precision=half), lambda: self._capture(single, half))
        except EpochcastError as problem:
            pair = self._pairs.get(single, lambda: self._capture(single))
            return pair._replace(
                notes=(f"the model does not run in {half} ({problem}); it is forecast as if all of it did",)
            )

    def _capture(self, recipe: Recipe, half: str | None = None) -> Pair:
        how = How(self.loss, self.step, self.passed, self.values)
        with self._prepared(recipe, half):
            self.values.rates.clear()
            example = example_in(self.example, half, self.values)
            small, large = (run(self.module, example, recipe.at(n), how) for n in (SMALL_BATCH, LARGE_BATCH))
        return Pair(small, large, half)

    def _update(self, captured: Captured, recipe: Recipe, half: str | None) -> tuple[Op, ...]:
        """The update, which does not grow with the batch."""
        with self._prepared(recipe, half):
            return recorded_update(self.module, captured.grads, recipe, self.values)

    @contextmanager
    def _prepared(self, recipe: Recipe, half: str | None) -> Iterator[None]:
        """The module in the format it runs in, the rest of the process kept away."""
        with ALONE, self.around(), self._frozen(recipe.freeze), stored_as_half(self.module, half, self.values):
            yield

    def _unscaled(self, recipe: Recipe, parameters: tuple[Parameter, ...]) -> Iterator[Op]:
        gradients = tuple(grad(p.tensor) for p in parameters if p.trainable)
        if self.grad_scaler and recipe.precision_rules.scales_loss and recipe.mode == "training" and gradients:
            kind = OptimizerUpdate("grad_scaler", "unscale", "foreach", 2)
            yield Op("grad_scaler.unscale", kind, gradients, gradients, (), Phase.UPDATE, "optimizer")

    @contextmanager
    def _frozen(self, patterns: Sequence[str]) -> Iterator[None]:
        """A context in which the matching parameters are frozen."""
        trainable = {p.name: p.trainable for p in self.parameters(patterns)}
        before = {name: p.requires_grad for name, p in self.module.named_parameters()}
        try:
            for name, parameter in self.module.named_parameters():
                parameter.requires_grad_(trainable[name])
            yield
        finally:
            for name, parameter in self.module.named_parameters():
                parameter.requires_grad_(before[name])


def _as_run(recipe: Recipe) -> Recipe:
    """What of a recipe changes the ops that the module runs."""
    return Recipe(
        1,
        mode=recipe.mode,
        freeze=recipe.freeze,
        attention=recipe.attention,
        channels_last=recipe.channels_last,
        with_loss=recipe.with_loss,
    )


def _joined(ops: tuple[Op, ...], tail: tuple[Op, ...]) -> tuple[Op, ...]:
    """The derived ops in front of the recorded update: gradients are unscaled before they are used."""
    first = next((i for i, op in enumerate(ops) if op.phase is Phase.UPDATE), len(ops))
    return (*ops[:first], *tail, *ops[first:])


def _with_ends(captured: Captured) -> tuple[Op, ...]:
    """The ops and one more that only carries the graph's inputs and outputs, so that they are resized with the rest."""
    return (*captured.ops, Op("ends", View(), (*captured.inputs, *captured.constants), captured.outputs))


def scan_notes(ops: Iterable[Op]) -> Iterator[str]:
    """A note about the module with the longest loop over time, if there is one: the plain version of Mamba or a
    hand-written RNN is captured as written, and a fused kernel (`mamba_ssm`) would be much faster.

    Ops of the model's own `forward` are a loop only if they are most of its ops: it may also hold the sums behind many
    layers.
    """
    counts = Counter((op.layer, op.kind, tuple(t.shape for t in op.outputs)) for op in ops if op.phase is Phase.FORWARD)
    equal = {key: count for key, count in counts.items() if count >= _LEAST_LOOP}
    if 2 * sum(count for (layer, _, _), count in equal.items() if not layer) < counts.total():
        equal = {key: count for key, count in equal.items() if key[0]}
    if equal:
        layers = {layer for layer, _, _ in equal}
        (layer, _, _), count = max(equal.items(), key=lambda item: item[1])
        more = f" and {len(layers) - 1} more" if len(layers) > 1 else ""
        where = f"module {layer!r}" if layer else "the model"
        yield (
            f"{where}{more} runs a loop of {count} equal ops, one kernel after another: "
            "a fused kernel (a scan) would be faster and is not modelled"
        )
