"""An exception inside the user's model as one line, with the end of the traceback as notes."""

from epochcast.describe.capture.torch.aten_recorder import AsksForValues
from epochcast.describe.capture.torch.example_arguments import Example, tensors_in
from epochcast.describe.capture.torch.traceback_notes import first_line, with_traceback
from epochcast.describe.graph.op import Phase
from epochcast.errors import BadInput

# PyTorch's messages when a model reads values of a `meta` tensor.
_VALUE_PHRASES = (
    "cannot be called on meta tensors",
    "data-dependent",
    "data-independent implementation",
    "Cannot copy out of meta tensor",
    "aten::_local_scalar_dense",
)
_SHAPE_PHRASES = ("shape", "size", "channels", "dimension", "dims", "Input height", "Input image")


def model_error(problem: BaseException, layer: str, phase: Phase, example: Example) -> BadInput:
    """The error for an exception that a model raised while it ran."""
    text = first_line(problem)
    if any(phrase in str(problem) for phrase in _VALUE_PHRASES):
        return AsksForValues(text, layer)
    where = f" in module {layer!r}" if layer else ""
    shapes = " and ".join(
        "×".join(map(str, t.shape[1:])) or "a scalar" for _, t in tensors_in((example.args, example.kwargs))
    )
    is_shape_error = isinstance(problem, RuntimeError | ValueError | TypeError) and any(
        w in str(problem) for w in _SHAPE_PHRASES
    )
    if phase is Phase.FORWARD and is_shape_error:
        error = BadInput(f"the model does not take an input of {shapes}{where}: {text}; give the right `input_shape`")
    else:
        error = BadInput(f"the model fails in {phase.value}{where}: {text}")
    return with_traceback(error, problem)


def wants_integers(problem: BaseException) -> bool:
    """Whether floats were given where an embedding needs token ids."""
    text = str(problem)
    return "for argument #1 'indices'" in text or "tensors used as indices" in text or "scalar types: Long, Int" in text
