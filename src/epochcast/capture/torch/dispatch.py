"""The recorder: every ATen call of a step on `meta`, with its storages, its phase and the module it came from.

A `TorchDispatchMode` sits below autograd, so it sees the real forward, backward and optimizer calls. Storages are
numbered in the order they appear, which makes two captures of the same program comparable. Views record nothing: they
share a storage.

*The layer of a backward call.* Autograd numbers its nodes in the order of the forward calls that created them. The
module that was running when a number was assigned is the layer of that node's backward calls.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from epochcast.capture.torch.aten import ASKS_VALUES, FREE, rule_for
from epochcast.capture.torch.call import Call, Piece, View, dtype_of
from epochcast.capture.torch.rules import Rule
from epochcast.capture.torch.shapes import QUICK, Quick
from epochcast.errors import BadInput
from epochcast.graph.kinds import Copy, Elementwise, Gather, Matmul, OptimizerUpdate, Reduce, Scatter
from epochcast.graph.op import Gradient, Phase

# Kinds whose formulas do not change with the direction; inside backward they are marked as part of a data gradient.
_UNDIRECTED = (Elementwise, Copy, Reduce, Gather, Scatter, Matmul)

# Arithmetic per element of a pass over lists of tensors, as graph/optimizer.py counts it.
_FOREACH_FLOPS = {"lerp": 3, "addcmul": 3, "addcdiv": 3, "sqrt": 2, "norm": 2}


_sequence: Any = torch._C._autograd._get_sequence_nr


class Draft(NamedTuple):
    """An op before its storages have names."""

    target: str
    piece: Piece
    phase: Phase
    layer: str


class _Plan(NamedTuple):
    """What an operator's schema tells before it is called."""

    name: str
    rule: Rule | None
    writes: tuple[tuple[int, str], ...]
    is_view: bool
    is_foreach: bool
    asks_values: bool
    quick: Quick | None


_PLANS: dict[Any, _Plan] = {}


def _plan(func: Any) -> _Plan:
    schema = func._schema
    full = schema.name.rpartition("::")[2]
    is_foreach = full.startswith(("_foreach_", "_fused_adam", "_fused_sgd", "_amp_foreach"))
    name = full.removesuffix("_")
    writes = tuple(
        (i, a.name) for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write
    )
    rule = None if name in FREE else rule_for(func, name)
    quick = QUICK.get(full) if schema.overload_name in ("", "Tensor", "Scalar") else None
    return _Plan(name, rule, writes, bool(getattr(func, "is_view", False)), is_foreach, name in ASKS_VALUES, quick)


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Collects drafts while it is active. `phase` and `algorithm` are set by `steps.run`."""

    def __init__(self, module: torch.nn.Module, batch: int = 1) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.batch = batch
        self.phase = Phase.FORWARD
        self.algorithm = "none"
        self.style = "foreach"
        self.is_recording = True
        self.drafts: list[Draft] = []
        self.modules: list[str] = []
        self._paths = {id(m): name for name, m in module.named_modules(remove_duplicate=False)}
        self._storages: dict[int, int] = {}
        self._weak_references: list[StorageWeakRef] = []
        self._layers: dict[int, str] = {}
        self._last_layer = ""
        self._parameters = {self.storage(p) for p in module.parameters()}
        self._hooks: list[Any] = []

    # ---- modules --------------------------------------------------------------------------------

    def __enter__(self) -> "Recorder":
        register = torch.nn.modules.module
        self._hooks = [
            register.register_module_forward_pre_hook(self._entered),
            register.register_module_forward_hook(self._left),
        ]
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *problem: Any) -> None:
        super().__exit__(*problem)  # type: ignore[no-untyped-call]
        for hook in self._hooks:
            hook.remove()

    def _entered(self, module: torch.nn.Module, inputs: Any) -> None:
        parent = self.modules[-1] if self.modules else ""
        self.modules.append(self._paths.get(id(module), parent))

    def _left(self, module: torch.nn.Module, inputs: Any, output: Any) -> None:
        self.modules.pop()

    def _layer(self) -> str:
        """The running module, or the one whose forward pass created the running autograd node."""
        if self.modules:
            self._last_layer = self.modules[-1]
        elif self.phase is Phase.BACKWARD:
            node = torch._C._current_autograd_node()
            if node is not None:
                self._last_layer = self._layers.get(node._sequence_nr(), self._last_layer)
        elif self.phase is Phase.UPDATE:
            self._last_layer = "optimizer"
        else:
            self._last_layer = "loss"
        return self._last_layer

    # ---- storages -------------------------------------------------------------------------------

    def storage(self, tensor: torch.Tensor) -> int:
        """The number of a tensor's storage. A weak reference keeps its address from being used again."""
        storage = tensor.untyped_storage()
        address = storage._cdata
        number = self._storages.get(address)
        if number is None:
            number = self._storages[address] = len(self._storages)
            self._weak_references.append(StorageWeakRef(storage))  # type: ignore[no-untyped-call]
        return number

    def see(self, tensor: torch.Tensor) -> View:
        """A tensor as it is recorded."""
        return View(self.storage(tensor), tuple(tensor.shape), dtype_of(tensor))

    def _see_read(self, tensor: torch.Tensor) -> View:
        """The same for an operand that is read. Each element is read once, so a broadcast dimension counts as size
        one.
        """
        shape = tuple(1 if step == 0 else n for n, step in zip(tensor.shape, tensor.stride(), strict=True))
        return View(self.storage(tensor), shape, dtype_of(tensor))

    # ---- calls ----------------------------------------------------------------------------------

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        plan = _PLANS.get(func)
        if plan is None:
            plan = _PLANS[func] = _plan(func)
        operands = list(_tensors((*args, *kwargs.values())))
        on_device = [t for t in operands if t.device.type == "meta"]
        if on_device:
            if plan.asks_values:
                raise AsksForValues(plan.name, self._layer())
            if len(on_device) < len(operands):
                args, kwargs = _on_meta(args), {k: _on_meta((v,))[0] for k, v in kwargs.items()}
                on_device = [t for t in _tensors((*args, *kwargs.values())) if t.device.type == "meta"]
        skips = plan.is_foreach and plan.writes and on_device  # writing on meta does nothing
        result = plan.quick(*args, **kwargs) if plan.quick and on_device else NotImplemented
        if result is NotImplemented:
            result = None if skips else func(*args, **kwargs)
        layer = self._layer()
        if self.phase is not Phase.UPDATE and torch.is_grad_enabled():
            self._layers.setdefault(_sequence() - 1, layer)
        if self.is_recording and plan.rule is not None and not plan.is_view:
            self._record(func, plan, args, kwargs, on_device, result, layer)
        return result

    def _record(
        self,
        func: Any,
        plan: _Plan,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        operands: list[torch.Tensor],
        result: Any,
        layer: str,
    ) -> None:
        if not operands and any(True for _ in _tensors((*args, *kwargs.values()))):
            return  # a copy from the host to the device, which is the loader's work
        tensors = tuple(self._see_read(t) for t in operands)
        read = {view.storage for view in tensors}
        new_views = [self.see(t) for t in _tensors((result,)) if t.device.type == "meta"]
        results = [view for view in new_views if view.storage not in read]
        for place, name in plan.writes:
            written = args[place] if place < len(args) else kwargs.get(name)
            results += [self.see(t) for t in _tensors((written,)) if t.device.type == "meta"]
        if not any(_elements(view) for view in results):
            return
        if plan.is_foreach:
            pieces: Iterable[Piece] = (self._pass(func, plan, tensors, tuple(results)),)
        else:
            assert plan.rule is not None
            call = Call(
                func, plan.name, args, kwargs, tensors, tuple(results), self.see, self._is_parameter, self.batch
            )
            pieces = plan.rule(call)
        is_gradient = self.phase is Phase.BACKWARD and not torch.is_grad_enabled()
        for piece in pieces:
            if is_gradient and piece.gradient is Gradient.NONE and isinstance(piece.kind, _UNDIRECTED):
                piece = piece._replace(gradient=Gradient.DATA)
            self.drafts.append(Draft(plan.name, piece, self.phase, layer))

    def _pass(self, func: Any, plan: _Plan, tensors: tuple[View, ...], results: tuple[View, ...]) -> Piece:
        """One sweep over lists of tensors; a list given twice is read once."""
        step = plan.name.removeprefix("_foreach_")
        scaled = step in ("add", "sub") and "List" in func._schema.overload_name  # a + α·b
        kind = OptimizerUpdate(self.algorithm, step, self.style, 2 if scaled else _FOREACH_FLOPS.get(step, 1))
        return Piece(kind, tuple(dict.fromkeys(tensors)), results)

    def _is_parameter(self, view: View) -> bool:
        return view.storage in self._parameters


class AsksForValues(BadInput):
    """The model's control flow depends on the values of a tensor."""

    def __init__(self, operator: str, layer: str) -> None:
        where = f"module {layer!r}" if layer else "the model"
        super().__init__(
            f"{where} needs the values of a tensor ({operator}), which a forecast does not have: "
            "its work depends on the data"
        )
        self.add_note("hint: .item(), bool(tensor), nonzero and masks as indices need values; torch.where does not")


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _on_meta(values: Any) -> Any:
    """Host tensors with dimensions (tables a model keeps beside its buffers) moved to `meta`; host scalars stay."""
    return tuple(
        value.to("meta")
        if isinstance(value, torch.Tensor) and value.device.type != "meta" and value.dim()
        else type(value)(_on_meta(value))
        if isinstance(value, list | tuple)
        else value
        for value in values
    )


def _elements(view: View) -> int:
    total = 1
    for size in view.shape:
        total *= size
    return total
