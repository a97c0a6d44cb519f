"""One step of a module on `meta`: forward, loss, backward, optimizer, each run by the framework itself.

The update is recorded by itself, so that another optimizer runs nothing else again. It is run twice and recorded once:
the first step makes the optimizer's state, the second is what every later step looks like. LAMB (torch has none) and
the update styles `fused` and `loop` are derived by rule (describe/graph/optimizer.py).
"""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from epochcast.base.garbage import without_collecting
from epochcast.describe.capture.torch.aten_call import dtype_of
from epochcast.describe.capture.torch.aten_recorder import Recorder
from epochcast.describe.capture.torch.cuda_calls import CudaIsHere, eager
from epochcast.describe.capture.torch.default_loss import loss_of, outputs_of, user_loss
from epochcast.describe.capture.torch.example_arguments import Example, mapped
from epochcast.describe.capture.torch.fused_kernels import cuda_kernels
from epochcast.describe.capture.torch.small_values import Values
from epochcast.describe.capture.torch.storage_names import Storage, named_ops
from epochcast.describe.capture.torch.user_errors import model_error
from epochcast.describe.capture.torch.user_step import OwnStep, Step
from epochcast.describe.graph.op import Op, Parameter, Phase
from epochcast.describe.graph.optimizer import ALIASES, update
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import Relation, Tensor, gradient_name
from epochcast.errors import EndsProgram, EpochcastError

Loss = Callable[..., torch.Tensor]

OPTIMIZERS: Mapping[str, Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, foreach=True),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, foreach=True),
    "adam": lambda p: torch.optim.Adam(p, foreach=True),
    "adamw": lambda p: torch.optim.AdamW(p, foreach=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, foreach=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, foreach=True),
    "adadelta": lambda p: torch.optim.Adadelta(p, foreach=True),
}
"""The optimizers torch has, as the recipe names them."""


@dataclass(frozen=True)
class Captured:
    """The ops of a step, its inputs, constants and outputs; `notes` say what was assumed or replaced.

    `grads` are the gradients of the parameters by name, `loss_place` is where the loss begins among the ops.
    """

    ops: tuple[Op, ...]
    inputs: tuple[Tensor, ...]
    constants: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    notes: tuple[str, ...] = ()
    has_updated: bool = False
    grads: Mapping[str, torch.Tensor] = field(default_factory=dict)
    loss_place: int | None = None

    @property
    def forward(self) -> "Captured":
        """The forward pass of the step, without loss."""
        ops = tuple(op for op in self.ops[: self.loss_place] if op.phase is Phase.FORWARD)
        read = {t.name for op in ops for t in (*op.inputs, *op.weights)}
        return replace(self, ops=ops, constants=tuple(t for t in self.constants if t.name in read))


def parameters_of(module: torch.nn.Module) -> tuple[Parameter, ...]:
    """The parameters by their state-dict names, a shared one once."""
    return tuple(
        Parameter(Tensor(tuple(p.shape), dtype_of(p), name), p.requires_grad, name.rpartition(".")[0])
        for name, p in module.named_parameters()
    )


@dataclass(frozen=True)
class How:
    """How a module is run: its loss, or a whole step of the user's own for `passed`, and the values that are known."""

    loss: Loss | None = None
    step: Step | None = None
    passed: Any = None
    values: Values = field(default_factory=Values)


@without_collecting()
def run(module: torch.nn.Module, example: Example, recipe: Recipe, how: How | None = None) -> Captured:
    """One step at the recipe's batch, in float32, without the update; a step of the user's own brings its update."""
    how = how or How()
    module.train()
    for parameter in module.parameters():
        parameter.grad = None
    inputs_at_batch = example.at(recipe.batch, how.values)
    layout = torch.channels_last if recipe.channels_last else torch.contiguous_format
    module.to(memory_format=layout)  # type: ignore[call-overload]
    if recipe.channels_last:
        inputs_at_batch = _channels_last(inputs_at_batch)
    recorder = Recorder(module, recipe.batch, how.values)
    storages = {recorder.storage(p): Storage(name) for name, p in module.named_parameters()}
    storages |= {recorder.storage(b): Storage(name) for name, b in module.named_buffers() if b.device.type == "meta"}
    used_names = {storage.name for storage in storages.values()}
    inputs = {f"input:{name}" if name in used_names else name: tensor for name, tensor in inputs_at_batch.named(module)}
    storages |= {recorder.storage(t): Storage(name) for name, t in inputs.items()}
    notes: tuple[str, ...] = ()
    has_updated, loss_place = False, None
    with (
        cuda_kernels(recipe.attention),
        _fixed_random_state(),
        eager(),
        CudaIsHere("meta", how.values),
        recorder,
        _explained(recorder, inputs_at_batch),
    ):
        if how.step is not None:
            user_step = OwnStep(recorder, module)
            finals = outputs_of(user_step.run(how.step, how.passed, inputs_at_batch.as_batch))
            storages |= user_step.storages
            has_updated = bool(user_step.optimizers)
            if has_updated:
                notes = (
                    f"the step runs its own optimizers ({', '.join(user_step.optimizers)}), not {recipe.optimizer}",
                )
        else:
            finals, loss_place = _run_module(recorder, module, inputs_at_batch, recipe, how.loss)
            storages |= {
                recorder.storage(p.grad): Storage(gradient_name(name), Relation(gradient_of=name))
                for name, p in module.named_parameters()
                if p.grad is not None
            }
    ops, named_storages = named_ops(recorder.drafts, storages)
    ops = tuple(op for op in ops if op.phase in _PHASES[recipe.mode]) if how.step is not None else ops

    def tensor(t: torch.Tensor) -> Tensor:
        view = recorder.see(t)
        return Tensor(view.shape, view.dtype, *named_storages.get(view.storage, Storage(f"constant:{view.storage}")))

    return Captured(
        ops,
        tuple(replace(tensor(t), name=name) for name, t in inputs.items()),
        _constants(ops, {*inputs, *(n for n, _ in module.named_parameters())}),
        tuple(tensor(t) for t in finals),
        (*notes, *recorder.host.notes),
        has_updated,
        {name: p.grad for name, p in module.named_parameters() if p.grad is not None},
        loss_place,
    )


_PHASES = {
    "forward": (Phase.FORWARD,),
    "forward_backward": (Phase.FORWARD, Phase.BACKWARD),
    "training": tuple(Phase),
}
"""What of a user's own step belongs to a mode."""


def _run_module(
    recorder: Recorder, module: torch.nn.Module, example: Example, recipe: Recipe, loss: Loss | None
) -> tuple[tuple[torch.Tensor, ...], int]:
    """Forward, loss and backward; the outputs, and how many ops came before the loss."""
    result = module(*example.args, **example.kwargs)
    finals, loss_place = outputs_of(result), len(recorder.drafts)
    if recipe.mode != "forward":
        target = None
        if recipe.with_loss:
            target = loss_of(result) if loss is None else user_loss(loss, result, example.as_batch)
        _backward(recorder, finals, target)
    return finals, loss_place


def _constants(ops: tuple[Op, ...], named: set[str]) -> tuple[Tensor, ...]:
    """Tensors that are read but are neither computed, inputs nor parameters: buffers and tables."""
    defined = set(named)
    constants: dict[str, Tensor] = {}
    for op in ops:
        for tensor in (*op.inputs, *op.weights):
            if tensor.name not in defined:
                constants.setdefault(tensor.name, tensor)
        defined.update(t.name for t in op.outputs)
    return tuple(constants.values())


def _channels_last(example: Example) -> Example:
    def changed(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor

    return replace(example, args=mapped(example.args, changed), kwargs=mapped(dict(example.kwargs), changed))


def _backward(recorder: Recorder, finals: tuple[torch.Tensor, ...], target: torch.Tensor | None) -> None:
    """Run backward from the loss, or from every output without one. Does nothing if nothing is trained."""
    recorder.phase = Phase.BACKWARD
    roots = [target] if target is not None else list(finals)
    roots = [t for t in roots if t.requires_grad]
    if not roots:
        return
    recorder.is_recording = target is not None  # the incoming gradient of an output is given, not computed
    seeds = [torch.ones_like(t) for t in roots]
    recorder.is_recording = True
    torch.autograd.backward(roots, seeds)


def recorded_update(
    module: torch.nn.Module, grads: Mapping[str, torch.Tensor], recipe: Recipe, values: Values
) -> tuple[Op, ...]:
    """The optimizer's ops on the parameters that have a gradient; none where the update follows by rule."""
    parameters = dict(module.named_parameters())
    trained = [(name, parameters[name]) for name in grads if parameters[name].requires_grad]
    build = OPTIMIZERS.get(_plain_name(recipe.optimizer))
    if recipe.mode != "training" or build is None or recipe.update_style != "foreach" or not trained:
        return ()
    for name, parameter in parameters.items():
        parameter.grad = grads.get(name)
    recorder = Recorder(module, recipe.batch, values)
    recorder.phase, recorder.algorithm = Phase.UPDATE, recipe.optimizer
    storages = {recorder.storage(p): Storage(name) for name, p in parameters.items()}
    storages |= {
        recorder.storage(grad): Storage(gradient_name(name), Relation(gradient_of=name)) for name, grad in grads.items()
    }
    with recorder:
        optimizer = build([p for _, p in trained])
        recorder.is_recording = False
        optimizer.step()
        recorder.is_recording = True
        storages |= {
            recorder.storage(value): Storage(f"{key}:{name}", Relation(state_of=name))
            for name, p in trained
            for key, value in optimizer.state[p].items()
            if isinstance(value, torch.Tensor) and value.device.type == "meta"
        }
        optimizer.step()
    return named_ops(recorder.drafts, storages)[0]


def derived_update(parameters: tuple[Parameter, ...], recipe: Recipe) -> tuple[Op, ...]:
    """The update by rule, where torch's own was not recorded."""
    if recipe.mode != "training" or (_plain_name(recipe.optimizer) in OPTIMIZERS and recipe.update_style == "foreach"):
        return ()
    return update(parameters, recipe.optimizer, recipe.update_style, is_apart=recipe.update_in_backward)


def _plain_name(optimizer: str) -> str:
    key = optimizer.casefold().replace("-", "_")
    return ALIASES.get(key, key)


@contextmanager
def _fixed_random_state() -> Iterator[None]:
    """Layers that are dropped at random are the same in every capture. The caller's generators keep their state."""
    state = random.getstate()
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            random.seed(0)
            yield
    finally:
        random.setstate(state)


@contextmanager
def _explained(recorder: Recorder, example: Example) -> Iterator[None]:
    """Turn an exception of the user's code or of `meta` into one line."""
    try:
        yield
    except EpochcastError:
        raise
    except SystemExit as problem:
        raise EndsProgram("the model", problem) from problem
    except Exception as problem:  # the user's code may raise anything
        layer = recorder.modules[-1] if recorder.modules else ""
        raise model_error(problem, layer, recorder.phase, example) from problem
