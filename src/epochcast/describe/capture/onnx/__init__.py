"""ONNX files as forward graphs at any batch size. Nothing is run, no weights are loaded; backward is derived."""

from functools import partial
from pathlib import Path

from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.onnx.batch_binding import Binding, bind
from epochcast.describe.capture.onnx.onnx_file import File, read_file
from epochcast.describe.capture.onnx.onnx_rules import RULES
from epochcast.describe.capture.onnx.onnx_walk import OnnxValue, OnnxWalk
from epochcast.describe.capture.read_errors import reading
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.op_kinds import Conv, Norm
from epochcast.errors import BadInput

__all__ = ["load_onnx"]


def load_onnx(path: str | Path, input_shape: tuple[int, ...] | None = None) -> BuiltModel:
    """The model of an `.onnx` file. `input_shape` is one sample of the first input, where the file does not fix it."""
    with reading(Path(path).name):
        file = read_file(Path(path))
        binding = bind(file, input_shape)
        reference = None
        if binding.exported_batch is not None:
            walk = OnnxWalk(file, binding, binding.exported_batch, None)
            walk.run(RULES)
            reference = walk.values
        build = partial(_build, file, binding, reference)
        build(3)  # errors in the file are raised now
    return BuiltModel(file.name, build, file.label)


def _build(file: File, binding: Binding, reference: dict[str, OnnxValue] | None, batch: int) -> Graph:
    walk = OnnxWalk(file, binding, batch, reference)
    walk.run(RULES)
    results = [walk.values[name] for name in file.outputs if name in walk.values]
    outputs = [value.tensor for value in results if value.tensor is not None and value.dtype.is_float and value.shape]
    if not outputs:
        raise BadInput(f"{file.label} computes no floating-point output, so there is nothing to train")
    return walk.b.finish(outputs, notes=(*walk.notes, *_folded_note(walk)))


def _folded_note(walk: OnnxWalk) -> tuple[str, ...]:
    """Exporters for inference fold batch normalisation into convolutions; training it is then missing from the file."""
    kinds = {type(op.kind) for op in walk.b.ops}
    convolutions = sum(isinstance(op.kind, Conv) for op in walk.b.ops)
    if convolutions > 8 and Norm not in kinds:
        return (
            "the file has no normalisation; if it was exported for inference, batch norms are folded into the "
            "convolutions and their training is not counted: export in training mode",
        )
    return ()
