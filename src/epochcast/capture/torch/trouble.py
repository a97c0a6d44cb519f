"""What went wrong inside the user's model, as one clear line with the tail of the traceback as notes."""

from epochcast.capture.torch.dispatch import AsksForValues
from epochcast.capture.torch.example import Example, tensors_in
from epochcast.capture.torch.notes import first_line, with_traceback
from epochcast.errors import BadInput
from epochcast.graph.op import Phase

# What PyTorch says when a value is asked of a tensor that has none.
_VALUE_WORDS = (
    "cannot be called on meta tensors",
    "data-dependent",
    "data-independent implementation",
    "Cannot copy out of meta tensor",
    "aten::_local_scalar_dense",
)
_SHAPE_WORDS = ("shape", "size", "channels", "dimension", "dims", "Input height", "Input image")


def refused(problem: BaseException, layer: str, phase: Phase, fed: Example) -> BadInput:
    """The error a user reads for anything a model raised while it ran."""
    text = first_line(problem)
    if any(words in str(problem) for words in _VALUE_WORDS):
        return AsksForValues(text, layer)
    where = f" in module {layer!r}" if layer else ""
    shapes = " and ".join("×".join(map(str, t.shape[1:])) or "a scalar" for _, t in tensors_in((fed.args, fed.kwargs)))
    fits = isinstance(problem, RuntimeError | ValueError | TypeError) and any(w in str(problem) for w in _SHAPE_WORDS)
    if phase is Phase.FORWARD and fits:
        error = BadInput(f"the model does not take an input of {shapes}{where}: {text}; give the size with --input")
    else:
        error = BadInput(f"the model fails in {phase.value}{where}: {text}")
    return with_traceback(error, problem)


def wants_integers(problem: BaseException) -> bool:
    """Whether floats were given where an embedding wants token ids."""
    text = str(problem)
    return "for argument #1 'indices'" in text or "tensors used as indices" in text or "scalar types: Long, Int" in text
