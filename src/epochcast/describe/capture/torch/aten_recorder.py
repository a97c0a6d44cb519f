"""The recorder: every ATen call of a step on `meta`, with its storages, its phase and the module it came from.

A `TorchDispatchMode` sits below autograd, so it sees the real forward, backward and optimizer calls. Storages are
numbered in the order they appear, which makes two captures of the same program comparable. Views record nothing: they
share a storage.

*The phase of a call.* Set from outside; where a user's own step runs, a call inside an autograd node is backward, and
one inside an optimizer's step is update.

*The layer of a backward call.* Autograd numbers its nodes in the order of the forward calls that created them. The
module that was running when a number was assigned is the layer of that node's backward calls.
"""

from collections.abc import Iterable, Iterator, Mapping
from threading import get_ident
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from epochcast.describe.capture.torch.aten_call import AtenCall, Piece, TensorView, dtype_of
from epochcast.describe.capture.torch.call_plans import CallPlan, plan_of
from epochcast.describe.capture.torch.host_values import HostValues
from epochcast.describe.capture.torch.meta_kernels import META_KERNELS
from epochcast.describe.capture.torch.small_values import Unknown, Values
from epochcast.describe.graph.op import Gradient, Phase
from epochcast.describe.graph.op_kinds import Copy, Elementwise, Gather, Matmul, OptimizerUpdate, Reduce, Scatter
from epochcast.errors import BadInput

# Kinds whose formulas do not change with the direction; inside backward they are marked as part of a data gradient.
_UNDIRECTED = (Elementwise, Copy, Reduce, Gather, Scatter, Matmul)

# Arithmetic per element of a pass over lists of tensors, as describe/graph/optimizer.py counts it.
_FOREACH_FLOPS = {"lerp": 3, "addcmul": 3, "addcdiv": 3, "sqrt": 2, "norm": 2}

_JOINS = ("cat", "stack")

_sequence: Any = torch._C._autograd._get_sequence_nr


class Draft(NamedTuple):
    """An op before its storages have names."""

    target: str
    piece: Piece
    phase: Phase
    layer: str


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Collects drafts while it is active. `phase` and `algorithm` are set by `steps.run`."""

    def __init__(self, module: torch.nn.Module, batch: int = 1, values: Values | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.batch = batch
        self.host = HostValues(values or Values(), batch)
        self.has_run_backward = False
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
        self._thread = get_ident()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Asked by torch, which else wraps every call in `torch._dynamo`; captures run eagerly (`cuda_calls.eager`)."""
        return False

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
        if get_ident() != self._thread:  # torch calls the hooks for the modules of every thread
            return
        parent = self.modules[-1] if self.modules else "loss"
        self.modules.append(self._paths.get(id(module), parent))

    def _left(self, module: torch.nn.Module, inputs: Any, output: Any) -> None:
        if get_ident() == self._thread:
            self.modules.pop()

    def running_phase(self) -> Phase:
        """The phase of what runs now; a step of the user's own calls backward by itself."""
        if self.phase is Phase.FORWARD and torch._C._current_autograd_node() is not None:
            self.has_run_backward = True
            return Phase.BACKWARD
        return self.phase

    def _layer(self) -> str:
        """The running module, or the one whose forward pass created the running autograd node."""
        if self.modules:
            self._last_layer = self.modules[-1]
        elif self.running_phase() is Phase.BACKWARD:
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

    def see(self, tensor: torch.Tensor) -> TensorView:
        """A tensor as it is recorded."""
        return TensorView(self.storage(tensor), tuple(tensor.shape), dtype_of(tensor))

    def _see_read(self, tensor: torch.Tensor) -> TensorView:
        """The same for an operand that is read. Each element is read once, so a broadcast dimension counts as size
        one.
        """
        shape = tuple(1 if step == 0 else n for n, step in zip(tensor.shape, tensor.stride(), strict=True))
        return TensorView(self.storage(tensor), shape, dtype_of(tensor))

    # ---- calls ----------------------------------------------------------------------------------

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        plan = plan_of(func)
        operands = list(_tensors((*args, *kwargs.values())))
        on_device = [t for t in operands if t.device.type == "meta"]
        if on_device:
            if plan.name == "_local_scalar_dense":
                return self._scalar(args[0])
            if plan.name == "_to_copy" and _is_host(kwargs.get("device")):
                return self._to_host(func, args, kwargs)
            if len(on_device) < len(operands):
                args, kwargs = self._on_meta(args), {k: self._on_meta((v,))[0] for k, v in kwargs.items()}
                on_device = [t for t in _tensors((*args, *kwargs.values())) if t.device.type == "meta"]
        result, args = self._result(func, plan, args, kwargs, on_device)
        self.host.choices.follow(plan.name, args, result)
        layer = self._layer()
        if self.phase is not Phase.UPDATE and torch.is_grad_enabled():
            self._layers.setdefault(_sequence() - 1, layer)
        if self.is_recording and plan.rule is not None and not plan.is_view:
            self._record(func, plan, args, kwargs, on_device, result, layer)
        return result

    def _result(
        self,
        func: Any,
        plan: CallPlan,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        on_device: list[torch.Tensor],
    ) -> tuple[Any, tuple[Any, ...]]:
        """What a call returns, and its arguments with masks replaced by places."""
        if on_device:
            quick = self._quick(plan, args, kwargs)
            if quick is not NotImplemented:
                self.host.forget(plan.written(args, kwargs))
                return quick, args
            try:
                args = self.host.with_places(plan.name, args)
                if plan.asks_values:
                    return self.host.lifted(func, args, kwargs), args
            except Unknown:
                raise AsksForValues(plan.name, self._layer()) from None
        try:
            result = func(*args, **kwargs)
        except (NotImplementedError, RuntimeError) as problem:
            try:
                return self.host.lifted(func, args, kwargs), args
            except Exception:
                raise problem from None
        if plan.makes_values:
            self.host.follow(func, plan.name, args, kwargs, plan.written(args, kwargs), result)
        return result, args

    def _quick(self, plan: CallPlan, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """What a call on `meta` returns where that is known without PyTorch's help."""
        if plan.is_foreach and plan.writes:
            return None  # writing on meta does nothing
        if plan.name in META_KERNELS:
            return META_KERNELS[plan.name](self.host.values, *args, **kwargs)
        return plan.quick(*args, **kwargs) if plan.quick else NotImplemented

    def _scalar(self, tensor: torch.Tensor) -> Any:
        try:
            return self.host.scalar(tensor, self._layer())
        except Unknown:
            raise AsksForValues("item", self._layer()) from None

    def _to_host(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> torch.Tensor:
        """A copy on the host where the values are known; else it stays on `meta`, and asking it for values says so."""
        try:
            value = self.host.values.of(args[0])
        except Unknown:
            copied: torch.Tensor = func(*args, **{**kwargs, "device": torch.device("meta")})
            return copied
        return value.to(kwargs.get("dtype") or value.dtype, copy=True)

    def _on_meta(self, values: Any) -> Any:
        """Host tensors with dimensions (tables a model keeps beside its buffers) moved to `meta`; host scalars stay."""
        return tuple(
            self._moved(value)
            if isinstance(value, torch.Tensor) and value.device.type != "meta" and value.dim()
            else type(value)(self._on_meta(value))
            if isinstance(value, list | tuple)
            else value
            for value in values
        )

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        if isinstance(tensor, torch.nn.Parameter):
            raise BadInput(
                "a weight is used that is not among the model's parameters: modules belong into nn.ModuleList, "
                "not into a plain list, and a step uses the model it is given"
            )
        return self.host.values.moved(tensor)

    def _record(
        self,
        func: Any,
        plan: CallPlan,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        operands: list[torch.Tensor],
        result: Any,
        layer: str,
    ) -> None:
        if not operands and any(True for _ in _tensors((*args, *kwargs.values()))):
            return  # a copy from the host to the device, which is the loader's work
        tensors = tuple(self._see_read(t) for t in operands)
        if plan.name in _JOINS:
            tensors = tuple(_together(tensors))
        read = {view.storage for view in tensors}
        new_views = [self.see(t) for t in _tensors((result,)) if t.device.type == "meta"]
        results = [view for view in new_views if view.storage not in read]
        results += [self.see(t) for t in plan.written(args, kwargs)]
        if not any(_elements(view) for view in results):
            return
        if plan.is_foreach:
            pieces: Iterable[Piece] = (self._pass(func, plan, tensors, tuple(results)),)
        else:
            assert plan.rule is not None
            call = AtenCall(
                func, plan.name, args, kwargs, tensors, tuple(results), self.see, self._is_parameter, self.batch
            )
            pieces = plan.rule(call)
        phase = self.running_phase()
        # what a module computes again is no gradient; a gradient that is itself differentiated runs in no module
        is_gradient = phase is Phase.BACKWARD and not (torch.is_grad_enabled() and self.modules)
        for piece in pieces:
            if is_gradient and piece.gradient is Gradient.NONE and isinstance(piece.kind, _UNDIRECTED):
                piece = piece._replace(gradient=Gradient.DATA)
            self.drafts.append(Draft(plan.name, piece, phase, layer))

    def _pass(
        self, func: Any, plan: CallPlan, tensors: tuple[TensorView, ...], results: tuple[TensorView, ...]
    ) -> Piece:
        """One sweep over lists of tensors; a list given twice is read once."""
        step = plan.name.removeprefix("_foreach_")
        scaled = step in ("add", "sub") and "List" in func._schema.overload_name  # a + α·b
        kind = OptimizerUpdate(self.algorithm, step, self.style, 2 if scaled else _FOREACH_FLOPS.get(step, 1))
        return Piece(kind, tuple(dict.fromkeys(tensors)), results)

    def _is_parameter(self, view: TensorView) -> bool:
        return view.storage in self._parameters


class AsksForValues(BadInput):
    """The model's control flow depends on the values of a tensor."""

    def __init__(self, operator: str, layer: str) -> None:
        where = f"module {layer!r}" if layer else "the model"
        super().__init__(
            f"{where} needs the values of a tensor ({operator}), which a forecast does not have: "
            "its work depends on the data"
        )
        self.add_note("hint: example inputs with real values may tell (`inputs`, or what the factory returns);")
        self.add_note("torch.where(mask, a, b) needs no values; .item(), nonzero and masks as indices do")


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _together(views: Iterable[TensorView]) -> Iterator[TensorView]:
    """Operands that lie in one storage as one: a batch that was taken apart by samples has as many as samples."""
    by_storage: dict[tuple[int, Any], list[TensorView]] = {}
    for view in views:
        by_storage.setdefault((view.storage, view.dtype), []).append(view)
    for (storage, dtype), parts in by_storage.items():
        yield parts[0] if len(parts) == 1 else TensorView(storage, (sum(map(_elements, parts)),), dtype)


def _is_host(device: Any) -> bool:
    return device is not None and torch.device(device).type == "cpu"


def _elements(view: TensorView) -> int:
    total = 1
    for size in view.shape:
        total *= size
    return total
