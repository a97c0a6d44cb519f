"""Which dimensions of an ONNX file are the batch, and what the others are.

The first dimension of the first input is the batch. If the file names it, every dimension of that name is the batch; if
it is a number, the model was exported at that batch and is resized (`exported_batch`). Other named dimensions (height,
length) take their sizes from `input_shape`.
"""

from dataclasses import dataclass

from epochcast.describe.capture.channel_order import check_channels_first
from epochcast.describe.capture.onnx.onnx_file import File
from epochcast.describe.graph.tensor import DType
from epochcast.errors import BadInput


@dataclass(frozen=True)
class Bound:
    """An input whose batch dimensions are None."""

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
    """Fix every dimension but the batch; an error asks for `input_shape` where one is unknown."""
    first = file.inputs[0]
    if not first.dims:
        raise BadInput(f"{file.label}: input {first.name!r} has no shape, so the batch is unknown")
    lead = first.dims[0]
    exported = lead if isinstance(lead, int) else None
    sizes: dict[str, int | None] = {lead: None} if isinstance(lead, str) else {}
    sample_dims = first.dims[1:]
    if input_shape is not None:
        if len(input_shape) != len(sample_dims):
            expected = "x".join(str(d or "?") for d in sample_dims)
            raise BadInput(
                f"{file.label}: the input is {expected} for one sample, got {'x'.join(map(str, input_shape))}"
            )
        if isinstance(sample_dims[0], int):
            check_channels_first(input_shape, sample_dims[0])
        sizes |= {d: n for d, n in zip(sample_dims, input_shape, strict=True) if isinstance(d, str) and d != lead}
        sample_dims = input_shape
    bound = [Bound(first.name, (None, *_closed(file, first.name, sample_dims, sizes)), first.dtype)]
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
    """Sizes of named dimensions; None for the batch."""
    open_dims = [d for d in dims if not isinstance(d, int) and (d is None or d not in sizes)]
    if open_dims:
        names = ", ".join(repr(d) if d else "one without a name" for d in open_dims)
        raise BadInput(
            f"{file.label}: input {name!r} has dimensions of unknown size ({names}); "
            "give `input_shape`, one sample of the first input, such as 3x224x224"
        )
    return tuple(d if isinstance(d, int) else sizes[d] for d in dims if d is not None)
