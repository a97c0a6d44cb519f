"""Which dimensions of an ONNX file are the batch, and what the others are.

The first dimension of the first input is the batch. Where the file names it, every dimension of that name is; where it
is a number, the model was exported at that batch and is bound again (`exported_batch`). Other named dimensions
(height, length) take their sizes from `input_shape`.
"""

from dataclasses import dataclass

from epochcast.capture.onnx.file import File
from epochcast.errors import BadInput
from epochcast.graph.tensor import DType


@dataclass(frozen=True)
class Bound:
    """An input with its batch dimensions still open (None)."""

    name: str
    dims: tuple[int | None, ...]
    dtype: DType

    def at(self, batch: int) -> tuple[int, ...]:
        """The shape at a batch size."""
        return tuple(batch if d is None else d for d in self.dims)


@dataclass(frozen=True)
class Binding:
    """All inputs, the sizes of named dimensions, and the batch the file is fixed to, if it is."""

    inputs: tuple[Bound, ...]
    sizes: dict[str, int | None]
    exported_batch: int | None


def bind(file: File, input_shape: tuple[int, ...] | None) -> Binding:
    """Decide every dimension but the batch; ask for `--input` where one is open."""
    first = file.inputs[0]
    if not first.dims:
        raise BadInput(f"{file.label}: input {first.name!r} has no shape, so the batch is unknown")
    lead = first.dims[0]
    exported = lead if isinstance(lead, int) else None
    sizes: dict[str, int | None] = {lead: None} if isinstance(lead, str) else {}
    given = first.dims[1:]
    if input_shape is not None:
        if len(input_shape) != len(given):
            shown = "x".join(str(d or "?") for d in given)
            raise BadInput(f"{file.label}: the input is {shown} for one sample, got {'x'.join(map(str, input_shape))}")
        sizes |= {d: n for d, n in zip(given, input_shape, strict=True) if isinstance(d, str) and d != lead}
        given = input_shape
    bound = [Bound(first.name, (None, *_closed(file, first.name, given, sizes)), first.dtype)]
    for other in file.inputs[1:]:
        dims: list[int | None] = []
        for place, dim in enumerate(other.dims):
            is_batch = place == 0 and (dim == exported if exported is not None else not isinstance(dim, int))
            if is_batch and isinstance(dim, str) and dim not in sizes:
                sizes[dim] = None
            dims.extend([None] if is_batch else _closed(file, other.name, (dim,), sizes))
        bound.append(Bound(other.name, tuple(dims), other.dtype))
    return Binding(tuple(bound), sizes, exported)


def _closed(
    file: File, name: str, dims: tuple[int | str | None, ...], sizes: dict[str, int | None]
) -> tuple[int | None, ...]:
    """Sizes for names; None stays for names that are the batch."""
    open_dims = [d for d in dims if not isinstance(d, int) and (d is None or d not in sizes)]
    if open_dims:
        names = ", ".join(repr(d) if d else "one without a name" for d in open_dims)
        raise BadInput(
            f"{file.label}: input {name!r} has open dimensions ({names}); "
            "give one sample of the first input, like --input 3x224x224"
        )
    return tuple(d if isinstance(d, int) else sizes[d] for d in dims if d is not None)
