"""How much a file, a table or a call may ask for. Generous for real work: a limit is there so that a wrong digit or a
damaged file ends in one line instead of a full memory.

The deepest networks that people train have some 10⁵ operators, the largest tensors some 10¹² elements, tables of
measurements some 10⁷ rows.
"""

from epochcast.errors import BadInput

MOST_OPS = 200_000
"""Operators of a forward pass."""
MOST_TENSOR_BYTES = 2**55
"""Bytes of one tensor: 32 PiB, more than any cluster has."""
MOST_DIMENSIONS = 64
"""Dimensions of one tensor; frameworks have 64 at most."""
MOST_STEP_BYTES = 2**61
"""Bytes of all storages of a step together, so that their sums stay exact."""
MOST_DOCUMENT_BYTES = 256 * 2**20
"""Bytes of a JSON or TOML file, unpacked."""
MOST_NESTING = 400
"""Brackets inside brackets in such a file."""
MOST_KEY_PARTS = 100
"""Parts of a dotted key of TOML."""
MOST_TABLE_ROWS = 200_000_000
"""Rows of a table of measurements."""

MOST_QUESTIONS = 1_000_000
"""Configurations of a campaign: at a tenth of a second each, more than a day."""


def check_ops(count: int, subject: str) -> None:
    """Raise where a network has more operators than any real one."""
    if count > MOST_OPS:
        raise BadInput(f"{subject} has more than {MOST_OPS:,} operators; is a repeat or a number of layers too large?")


def check_tensor(size_bytes: int, dimensions: int, subject: str) -> None:
    """Raise where a tensor is larger than any real one."""
    if size_bytes > MOST_TENSOR_BYTES:
        raise BadInput(f"{subject} would have more than 2^55 bytes in one tensor; check its sizes")
    if dimensions > MOST_DIMENSIONS:
        raise BadInput(f"{subject} would have a tensor of {dimensions} dimensions; the most is {MOST_DIMENSIONS}")


def check_step_bytes(size_bytes: int, subject: str) -> None:
    """Raise where all storages of a step together are larger than numbers that stay exact."""
    if size_bytes > MOST_STEP_BYTES:
        raise BadInput(f"{subject} would have more than 2^61 bytes in its tensors; check its batch and its sizes")


def check_questions(count: int) -> None:
    """Raise where a campaign would never end."""
    if count > MOST_QUESTIONS:
        raise BadInput(
            f"it comes to {count:,} measurements, at most {MOST_QUESTIONS:,} are made: are the repetitions right?"
        )
