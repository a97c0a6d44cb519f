"""What an out-of-memory message says: PyTorch's in its wordings since 1.0, JAX' and XLA's, TensorFlow's.

PyTorch, by version (CUDACachingAllocator.cpp):

    1.0 to 1.2   Tried to allocate A (GPU 0; C total capacity; T already allocated; F free; R cached)
    1.3 to 2.0   … R reserved in total by PyTorch)
    2.1 on       GPU 0 has a total capac(i)ty of C of which F is free. Process N has O memory in use. Including
                 non-PyTorch memory, this process has P memory in use. Of the allocated memory T is allocated by
                 PyTorch, and U is reserved by PyTorch but unallocated.

Until 1.2, `cached` is what the allocator holds beside the tensors; since 1.3 `reserved` counts both. XLA prints the
sums of its buffers, TensorFlow its allocator's statistics before the error. Of several messages the last counts.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from epochcast.base.record import Record
from epochcast.errors import BadInput, EpochcastError
from epochcast.observe.logs.log_reader import LogReader
from epochcast.units import parse_bytes

PYTORCH, JAX, TENSORFLOW = "pytorch", "jax", "tensorflow"
LOADING, FORWARD, LOSS, BACKWARD, UPDATE, EVALUATION = "loading", "forward", "loss", "backward", "update", "evaluation"
"""When in a run memory ends; "update" is the optimizer's step."""
MOST_TEXT = 64 << 20
_TRACEBACK_LINES = 120
"""Lines before a message in which its traceback is looked for."""

_SIZE = r"(\d+(?:\.\d+)?\s*(?:[KMGT]i?B|bytes|B)\b)"
_TORCH = re.compile(rf"(?:CUDA|HIP|XPU|MPS backend) out of memory[.\s]|Tried to allocate {_SIZE}\.? \(?GPU \d")
_XLA = re.compile(
    r"RESOURCE_EXHAUSTED:\s*(?:[^\n]*?: )?Out of memory (?:while trying to allocate|allocating) (\d+) bytes"
    r"|ran out of memory trying to allocate (\d+(?:\.\d+)?[KMGT]?i?B)"
)
_TF = re.compile(r"OOM when allocating tensor with shape\[([\d,]*)\] and type (\w+)", re.IGNORECASE)
_JAX_WORDS = re.compile(r"jaxlib|jax\.|XlaRuntimeError|JaxRuntimeError|BufferAssignment")

_NUMBERS: Mapping[str, re.Pattern[str]] = {
    "tried_bytes": re.compile(rf"[Tt]ried to allocate {_SIZE}"),
    "capacity_bytes": re.compile(rf"{_SIZE} total capacity|total capaci?ty of {_SIZE}|max allowed: {_SIZE}"),
    "free_bytes": re.compile(rf"; {_SIZE} free|of which {_SIZE} is free"),
    "allocated_bytes": re.compile(rf"{_SIZE} already allocated|{_SIZE} is allocated by PyTorch|MPS allocated: {_SIZE}"),
    "process_bytes": re.compile(rf"this process has {_SIZE} memory in use"),
}
_RESERVED = re.compile(rf"{_SIZE} reserved in total by PyTorch")
_CACHED = re.compile(rf"{_SIZE} cached\)")
_UNALLOCATED = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")
_OTHERS = re.compile(rf"Process \d+ has {_SIZE} memory in use")
_XLA_PARTS = re.compile(r"^\s*([a-z_ ]+?) allocation:\s+([\d.]+\s*[KMGT]?i?B)", re.MULTILINE)
_BFC = re.compile(r"^\s*(Limit|InUse|MaxInUse):\s+(\d+)", re.MULTILINE)
_TYPE_BYTES: Mapping[str, int] = {
    **dict.fromkeys(("double", "int64", "complex64"), 8),
    **dict.fromkeys(("half", "bfloat16", "int16"), 2),
    **dict.fromkeys(("bool", "int8", "uint8"), 1),
}
_FLOAT_BYTES = 4

# Lines of a traceback that say where the run was, the surest first: an update and a backward pass may call anything.
_PLACES: Mapping[str, re.Pattern[str]] = {
    UPDATE: re.compile(r"optimi[sz]er\.step\(|torch/optim/|optim/\w+\.py|exp_avg|apply_gradients|opt\.step\("),
    BACKWARD: re.compile(r"\.backward\(|autograd/__init__|autograd/graph|gradients/|tape\.gradient|transpose\(jvp"),
    EVALUATION: re.compile(r"\b(?:evaluat\w+|validat\w+|predict\w*|generate|evaluation_loop|prediction_step)\("),
    LOSS: re.compile(r"cross_entropy|log_softmax|logits\.float\(\)|loss_f(?:n|ct|unction)|logits\.to\("),
    LOADING: re.compile(r"from_pretrained|load_state_dict|load_checkpoint|model\.(?:to|cuda)\(|\.cuda\(|_apply\("),
    FORWARD: re.compile(r"\bforward\b|_call_impl|nn/functional|functional\.py"),
}


@dataclass(frozen=True, slots=True)
class OomMessage(Record):
    """The numbers of a message; None where it does not say.

    `allocated_bytes` are in tensors, `reserved_bytes` what the allocator holds of the card, tensors included;
    `process_bytes` all of the process, `others_bytes` that of other processes. `moment` is where in a
    step it was. `steps` had been made, where a log says so.
    """

    framework: str
    tried_bytes: int | None = None
    capacity_bytes: int | None = None
    free_bytes: int | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    process_bytes: int | None = None
    others_bytes: int | None = None
    moment: str | None = None
    steps: float | None = None

    @property
    def fragmented_bytes(self) -> int | None:
        """Held by the allocator, and in no tensor."""
        if self.reserved_bytes is None or self.allocated_bytes is None:
            return None
        return max(0, self.reserved_bytes - self.allocated_bytes)

    @property
    def context_bytes(self) -> int | None:
        """Of the process, beside its allocator; older messages do not tell it from other processes."""
        if self.process_bytes is None or self.reserved_bytes is None:
            return None
        return max(0, self.process_bytes - self.reserved_bytes)


def read_oom(text: str) -> OomMessage:
    """The last out-of-memory message in a text."""
    text = text[-MOST_TEXT:]
    readers = ((_TORCH, _torch), (_XLA, _xla), (_TF, _tensorflow))
    lasts = [(matches[-1], read) for pattern, read in readers if (matches := list(pattern.finditer(text)))]
    if not lasts:
        raise BadInput(
            "no out-of-memory message of PyTorch, JAX or TensorFlow: give the error with its traceback, or the log"
        )
    match, read = max(lasts, key=lambda pair: pair[0].start())
    before = text[: match.start()]
    return read(text, match, _moment(text, match), _steps(before))


def read_oom_file(path: Path) -> OomMessage:
    """The last message in a file; of a long one its end is read."""
    try:
        with path.open("rb") as source:
            source.seek(max(0, path.stat().st_size - MOST_TEXT))
            return read_oom(source.read().decode("utf-8", "replace"))
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}") from None


def _torch(text: str, match: re.Match[str], moment: str | None, steps: float | None) -> OomMessage:
    message = text[match.start() : match.start() + 4000]
    numbers = {name: _first(pattern, message) for name, pattern in _NUMBERS.items()}
    reserved, allocated = _first(_RESERVED, message), numbers["allocated_bytes"]
    if reserved is None and allocated is not None:
        beside = _first(_CACHED, message)
        beside = _first(_UNALLOCATED, message) if beside is None else beside
        reserved = None if beside is None else allocated + beside
    others = [parse_bytes(size) for size in _OTHERS.findall(message)]
    own = numbers["process_bytes"]
    if own is not None and own in others:
        others.remove(own)
    return OomMessage(
        PYTORCH,
        **numbers,
        reserved_bytes=reserved,
        others_bytes=sum(others) if own is not None or others else None,
        moment=moment,
        steps=steps,
    )


def _xla(text: str, match: re.Match[str], moment: str | None, steps: float | None) -> OomMessage:
    parts = {name.strip(): parse_bytes(size) for name, size in _XLA_PARTS.findall(text[match.start() :])}
    is_jax = _JAX_WORDS.search(text) is not None
    tried = int(match[1]) if match[1] else parse_bytes(match[2])
    statistics = _statistics(text[: match.start()])
    return OomMessage(
        JAX if is_jax else TENSORFLOW,
        tried_bytes=tried,
        capacity_bytes=statistics.get("Limit"),
        allocated_bytes=statistics.get("InUse") or parts.get("total"),
        moment=moment,
        steps=steps,
    )


def _tensorflow(text: str, match: re.Match[str], moment: str | None, steps: float | None) -> OomMessage:
    elements = 1
    for size in filter(None, match[1].split(",")):
        elements *= int(size)
    statistics = _statistics(text[: match.start()])
    return OomMessage(
        TENSORFLOW,
        tried_bytes=elements * _TYPE_BYTES.get(match[2].casefold(), _FLOAT_BYTES),
        capacity_bytes=statistics.get("Limit"),
        allocated_bytes=statistics.get("InUse"),
        moment=moment,
        steps=steps,
    )


def _statistics(before: str) -> dict[str, int]:
    """What TensorFlow's allocator dumped last."""
    return {name: int(value) for name, value in _BFC.findall(before)}


def _first(pattern: re.Pattern[str], message: str) -> int | None:
    match = pattern.search(message)
    return None if match is None else parse_bytes(next(filter(None, match.groups())).replace("bytes", "B"))


def _moment(text: str, match: re.Match[str]) -> str | None:
    """Where the traceback before the message, or the op behind it, was.

    Trainers that pass a closure call the forward and backward passes inside the optimizer's step: it is the moment
    only where none of them comes behind it.
    """
    lines = text[: match.start()].splitlines()[-_TRACEBACK_LINES:]
    around = "\n".join(_of_traceback(lines)) + text[match.start() : match.start() + 2000].partition("\n\n")[0]
    lasts = {moment: _last(pattern, around) for moment, pattern in _PLACES.items()}
    if lasts[UPDATE] < max(lasts[BACKWARD], lasts[FORWARD], lasts[LOSS]):
        lasts[UPDATE] = -1
    return next((moment for moment, place in lasts.items() if place >= 0), None)


def _last(pattern: re.Pattern[str], text: str) -> int:
    """Where its last match begins; -1 where there is none."""
    return max((match.start() for match in pattern.finditer(text)), default=-1)


def _of_traceback(lines: list[str]) -> Iterator[str]:
    """From the last `Traceback` on; all lines where there is none."""
    begins = [place for place, line in enumerate(lines) if line.lstrip().startswith("Traceback")]
    yield from lines[begins[-1] :] if begins else lines


def _steps(before: str) -> float | None:
    """Steps that the log before the message reports."""
    reader = LogReader()
    try:
        reports = [*reader.feed(before.encode()), *reader.close()]
    except EpochcastError:
        return None
    return max((report.step for report in reports if report.phase == "train"), default=None)
