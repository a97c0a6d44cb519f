"""Out-of-memory messages of PyTorch 2 with chosen numbers."""

TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    loss.backward()\n'


def torch_message(tried: str, capacity: str, free: str, own: str, allocated: str, loose: str, others: str = "") -> str:
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of "
        f"{capacity} of which {free} is free. {others}Including non-PyTorch memory, this process has {own} memory in "
        f"use. Of the allocated memory {allocated} is allocated by PyTorch, and {loose} "
        f"is reserved by PyTorch but unallocated."
    )


TORCH_LOOSE = torch_message("3.00 GiB", "23.65 GiB", "1.66 GiB", "20.81 GiB", "12.09 GiB", "4.84 GiB")
TORCH_SHARED = torch_message(
    "20.00 MiB",
    "79.15 GiB",
    "10.00 MiB",
    "18.60 GiB",
    "18.00 GiB",
    "100.00 MiB",
    "Process 417 has 60.50 GiB memory in use. ",
)


def backward_of(tried: float, free: float, allocated: float) -> str:
    """A message of the backward pass on a card with 23.65 GiB, by GiB."""
    own = f"{23.65 - free:.2f} GiB"
    return TRACEBACK + torch_message(
        f"{tried:.2f} GiB", "23.65 GiB", f"{free:.2f} GiB", own, f"{allocated:.2f} GiB", "300.00 MiB"
    )


TORCH_OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.93 GiB total capacity; 6.62 GiB already "
    "allocated; 19.69 MiB free; 6.79 GiB reserved in total by PyTorch)"
)
"""As PyTorch 1 wrote it."""
