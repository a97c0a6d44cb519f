"""Out-of-memory messages as frameworks print them, with their numbers."""

from pathlib import Path

import pytest

from epochcast.errors import BadInput
from epochcast.observe.oom.oom_message import read_oom, read_oom_file

MIB, GIB = 1 << 20, 1 << 30

TORCH_1_0 = (
    "RuntimeError: CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total capacity; "
    "8.57 GiB already allocated; 9.28 MiB free; 4.68 MiB cached)"
)
TORCH_1_13 = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 128.00 MiB (GPU 0; 11.17 GiB total capacity; "
    "10.85 GiB already allocated; 24.81 MiB free; 10.86 GiB reserved in total by PyTorch) If reserved memory is >> "
    "allocated memory try setting max_split_size_mb to avoid fragmentation."
)
TORCH_2_1 = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacty of "
    "23.65 GiB of which 1.66 GiB is free. Including non-PyTorch memory, this process has 20.81 GiB memory in use. Of "
    "the allocated memory 12.09 GiB is allocated by PyTorch, and 4.84 GiB is reserved by PyTorch but unallocated."
)
TORCH_2_5 = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 3 has a total capacity of 79.15 GiB "
    "of which 10.00 MiB is free. Process 417 has 60.50 GiB memory in use. Process 999 has 18.60 GiB memory in use. "
    "Including non-PyTorch memory, this process has 18.60 GiB memory in use. Of the allocated memory 18.00 GiB is "
    "allocated by PyTorch, with 12.00 MiB allocated in private pools (e.g., CUDA Graphs), and 100.00 MiB is reserved "
    "by PyTorch but unallocated."
)
MPS = (
    "RuntimeError: MPS backend out of memory (MPS allocated: 17.96 GB, other allocations: 384.00 KB, max allowed: "
    "18.13 GB). Tried to allocate 256.00 MB on private pool."
)
XLA = (
    "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4770354232 "
    "bytes.\n"
    "BufferAssignment OOM Debugging.\nBufferAssignment stats:\n             parameter allocation:  372.76MiB\n"
    "              constant allocation:    48.5KiB\n        maybe_live_out allocation:    9.64GiB\n"
    "     preallocated temp allocation:    4.44GiB\n                 total allocation:   14.44GiB\n"
)
TENSORFLOW = (
    "Stats: \nLimit:                 10619240448\nInUse:                 10619000000\n"
    "ResourceExhaustedError: OOM when allocating tensor with shape[64,2016,9,9] and type float on "
    "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Conv2D]"
)

NUMBERS = {
    TORCH_1_0: ("pytorch", 12.5 * MIB, 10.92 * GIB, 8.57 * GIB, 8.57 * GIB + 4.68 * MIB),
    TORCH_1_13: ("pytorch", 128 * MIB, 11.17 * GIB, 10.85 * GIB, 10.86 * GIB),
    TORCH_2_1: ("pytorch", 3 * GIB, 23.65 * GIB, 12.09 * GIB, 16.93 * GIB),
    TORCH_2_5: ("pytorch", 20 * MIB, 79.15 * GIB, 18.0 * GIB, 18.0 * GIB + 100 * MIB),
    MPS: ("pytorch", 256e6, 18.13e9, 17.96e9, None),
    XLA: ("jax", 4770354232, None, 14.44 * GIB, None),
    TENSORFLOW: ("tensorflow", 64 * 2016 * 81 * 4, 10619240448, 10619000000, None),
}


@pytest.mark.parametrize("text", NUMBERS)
def test_the_numbers_of_a_message(text: str) -> None:
    framework, tried, capacity, allocated, reserved = NUMBERS[text]
    message = read_oom(text)
    assert message.framework == framework
    for value, expected in (
        (message.tried_bytes, tried),
        (message.capacity_bytes, capacity),
        (message.allocated_bytes, allocated),
        (message.reserved_bytes, reserved),
    ):
        assert value is None if expected is None else value == pytest.approx(expected, abs=2)


def test_other_processes_are_those_with_another_memory() -> None:
    assert read_oom(TORCH_2_5).others_bytes == pytest.approx(60.5 * GIB, abs=2)
    assert read_oom(TORCH_2_1).others_bytes == 0


def traceback(*frames: str) -> str:
    lines = "".join(f'  File "x.py", line 1, in f\n    {frame}\n' for frame in frames)
    return f"Traceback (most recent call last):\n{lines}{TORCH_2_1}"


MOMENTS = {
    ("trainer.train()", "loss.backward()", "torch.autograd.backward("): "backward",
    ("out = model(x)", "return self._call_impl(*args)", "return F.conv2d(x)", "def forward("): "forward",
    ("optimizer.step()", "state['exp_avg'] = torch.zeros_like(p)"): "update",
    ("optimizer.step(closure)", "loss = closure()", "loss.backward()"): "backward",
    ("out = model(x)", "logits = logits.float()"): "loss",
    ("model = AutoModel.from_pretrained(name)",): "loading",
    ("metrics = evaluate(model)", "out = model(x)", "def forward("): "evaluation",
    ("x = 1",): None,
}


@pytest.mark.parametrize("frames", MOMENTS)
def test_the_traceback_says_when(frames: tuple[str, ...]) -> None:
    assert read_oom(traceback(*frames)).moment == MOMENTS[frames]


def test_a_log_says_after_how_many_steps_and_its_last_message_counts(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    lines = "".join(f"Epoch: [0][{n}/400]\tTime 0.500 (0.500)\tLoss 0.4 (0.4)\n" for n in range(100))
    log.write_text(f"{TORCH_1_0}\nretrying\n{lines}{traceback('loss.backward()')}\n", encoding="utf-8")
    message = read_oom_file(log)
    assert message.steps == 100
    assert message.capacity_bytes == pytest.approx(23.65 * GIB, abs=2)


@pytest.mark.parametrize("text", ["", "RuntimeError: shapes differ", "Killed", "ran out of patience"])
def test_a_text_without_a_message_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="no out-of-memory message"):
        read_oom(text)
