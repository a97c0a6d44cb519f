"""What an operator does on the host beside `meta`: the values of its small results (`values.py`).

How many elements a mask selects may be any number; a step at any batch size needs one that grows evenly. So it is
rounded to a whole number per sample, the same at both batch sizes of a capture (`Values.rates`).

Where a model asks for a value that nobody knows, a truth value is assumed as if nothing special happened (`all` is
true, `any` and comparisons are false), and a number of its activations as 1; both are noted. A count or a length cannot
be assumed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from epochcast.describe.capture.torch.expert_choices import Choices, places_of
from epochcast.describe.capture.torch.small_values import FLOATS, Unknown, Values, is_small

# A model that asks more often than this probably waits for a value to change.
MOST_ASSUMED = 10_000
_ASSUMED = {"all": True, "any": False, "_is_all_true": True, "_is_any_true": False}
_MASKED = ("index", "index_put", "_index_put_impl", "_unsafe_index", "_unsafe_index_put")
_SELECTIONS = (torch.ops.aten.nonzero.default, torch.ops.aten.masked_select.default)
_OTHERWISE: Mapping[torch.dtype, Any] = {torch.bool: False, **dict.fromkeys(FLOATS, 1.0)}


class HostValues:
    """Follows the calls of a capture with the values that are known. `notes` say what had to be assumed."""

    def __init__(self, values: Values, batch: int = 1) -> None:
        self.values = values
        self._batch = batch
        self._rates = iter(list(values.rates))
        self.notes: dict[str, None] = {}
        self._times_assumed = 0
        self.choices = Choices()

    def scalar(self, tensor: Tensor, layer: str) -> Any:
        """What `.item()` gives; raises `Unknown`."""
        value: Any
        try:
            value = self.values.of(tensor).item()
        except Unknown:
            value = _OTHERWISE.get(tensor.dtype)
            if value is None:
                raise
        else:
            if not self.values.is_assumed(tensor):
                return value
        self._times_assumed += 1
        if self._times_assumed > MOST_ASSUMED:
            raise Unknown
        where = "the model" if layer in ("", "loss") else f"module {layer!r}"
        if isinstance(value, bool):
            self.notes.setdefault(f"{where} asks its data whether a condition holds; {value} is assumed")
        else:
            self.notes.setdefault(f"{where} reads a number of its data (.item()); 1 is assumed")
        return value

    def lifted(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The call on known values, its results on `meta`; raises `Unknown`. For results whose shape is a value."""
        if func is _SELECTIONS[0] and self.choices.part(args[0]) is not None:
            return torch.stack(self._balanced(args[0]), 1)
        result = func(*self.values.on_host(args), **{k: self.values.on_host(v) for k, v in kwargs.items()})
        if func in _SELECTIONS:
            (result,) = self._evenly((result,))
        return _mapped(result, self.values.moved)

    def _balanced(self, mask: Tensor) -> list[Tensor]:
        """The places where a mask over balanced choices is true, as many per sample."""
        part = self.choices.part(mask)
        assert part is not None
        self.notes.setdefault("choices among experts are taken as balanced: each gets as many tokens")
        return places_of(mask, max(1, round(mask.numel() * part / self._batch)) * self._batch)

    def _evenly(self, places: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """As many places as grow evenly with the batch."""
        count = len(places[0])
        rate = next(self._rates, None)
        if rate is None:
            rate = round(count / self._batch)
            self.values.rates.append(rate)
        rows = torch.arange(rate * self._batch if count else 0, device="cpu") % max(1, count)
        return tuple(place.index_select(0, rows) for place in places)

    def with_places(self, name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of an indexing call, masks of known values replaced by the places where they are true."""
        if name not in _MASKED or not any(_is_mask(index) for index in args[1]):
            return args
        indices: list[Any] = []
        for index in args[1]:
            if _is_mask(index) and self.choices.part(index) is not None:
                indices.extend(self._balanced(index))
            elif _is_mask(index):
                places = self._evenly(self.values.of(index).nonzero(as_tuple=True))
                indices.extend(self.values.moved(place) for place in places)
            else:
                indices.append(index)
        return (args[0], indices, *args[2:])

    def forget(self, written: Iterable[Tensor]) -> None:
        """Something unknown was written into these."""
        for tensor in written:
            self.values.forget(tensor)

    def follow(
        self,
        func: Any,
        name: str,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        written: Iterable[Tensor],
        result: Any,
    ) -> None:
        """Keep the values of a call's results, where they are small and all operands are known."""
        written = list(written)
        new = [t for t in _tensors(result) if t.device.type == "meta"]
        if not all(map(is_small, (*new, *written))):
            self.forget(written)
            return
        try:
            operands = list(_tensors((args, *kwargs.values())))
            host_args = self.values.on_host(args)
            host_kwargs = {k: self.values.on_host(v) for k, v in kwargs.items()}
            values = list(_tensors(func(*host_args, **host_kwargs)))
            is_assumed = any(self.values.is_assumed(t) for t in operands)
        except Exception:  # what the host cannot do is unknown, too
            self.forget(written)
            if name in _ASSUMED and len(new) == 1:
                self.values.keep(new[0], torch.tensor(_ASSUMED[name], device="cpu"), is_assumed=True)
            return
        for tensor, value in zip(new, values, strict=False):
            if not any(tensor is other for other in written):
                self.values.keep(tensor, value, is_assumed=is_assumed)


def _is_mask(index: Any) -> bool:
    return isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8) and index.device.type == "meta"


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)([_mapped(item, change) for item in value])
    return value
