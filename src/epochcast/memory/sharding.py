"""What one rank holds of a step, as fractions of what a single device would hold.

ZeRO (Rajbhandari et al. 2020) shards the optimizer's state (stage 1), gradients too (2), parameters too (3, FSDP);
parameters are then gathered for as long as they are used: `gathered_bytes` at a time. DistributedDataParallel keeps its
gradients twice, once in buckets that are reduced together: as the backward pass makes them, in half where they are
added up in float32 elsewhere (`bucket_fraction`).
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from epochcast.errors import BadInput
from epochcast.graph.trace import Trace
from epochcast.memory.lifetimes import BEFORE, Integers, Lifetimes, Role


@dataclass(frozen=True, slots=True)
class Shares:
    """Fractions of parameters, gradients, optimizer state and activations, and what a rank holds in addition.

    `others_sample_bytes` are activations that are not of this batch, per sample of it: what other ranks send to the one
    with the loss, micro-batches in flight. `bucket_fraction` is of the bytes of the gradients.
    """

    parameter_fraction: float = 1.0
    gradient_fraction: float = 1.0
    state_fraction: float = 1.0
    activation_fraction: float = 1.0
    gathered_bytes: int = 0
    bucket_fraction: float = 0.0
    others_sample_bytes: int = 0

    def __post_init__(self) -> None:
        for name in ("parameter", "gradient", "state", "activation", "bucket"):
            name = f"{name}_fraction"
            if not getattr(self, name) >= 0:
                raise BadInput(f"{name} must be at least 0, got {getattr(self, name)}")

    @property
    def on_top(self) -> tuple[int, float, int]:
        """What a rank holds in addition to its part."""
        return self.gathered_bytes, self.bucket_fraction, self.others_sample_bytes

    def of(self, lives: Lifetimes) -> Lifetimes:
        """The lifetimes with buckets and gathered parameters."""
        buckets_bytes = int(self.bucket_fraction * lives.total_bytes(Role.GRADIENTS))
        storages = [
            (Role.PARAMETERS, self.gathered_bytes, 0),
            (Role.BUCKETS, buckets_bytes, 0),
            (Role.ACTIVATIONS, 0, self.others_sample_bytes),
        ]
        added = [storage for storage in storages if any(storage[1:])]
        if not added:
            return lives
        count = len(added)
        roles, fixed_bytes, sample_bytes = (np.array(column, dtype=np.int64) for column in zip(*added, strict=True))
        names = tuple(f"{role.label}#rank" for role, _, _ in added)
        return replace(lives, rank_own=lives.rank_own.union(names)).joined(
            names,
            roles,
            fixed_bytes,
            sample_bytes,
            np.full(count, BEFORE),
            np.full(count, lives.ops),
        )

    def scaled(self, size_bytes: Integers, lives: Lifetimes) -> Integers:
        """The bytes of every storage that a rank holds."""
        fractions = np.ones(len(Role))
        fractions[Role.PARAMETERS] = self.parameter_fraction
        fractions[Role.GRADIENTS] = self.gradient_fraction
        fractions[Role.OPTIMIZER_STATE] = self.state_fraction
        fractions[[Role.ACTIVATIONS, Role.TEMPORARIES, Role.AUTOCAST_COPIES]] = self.activation_fraction
        if np.all(fractions == 1):
            return size_bytes
        share = fractions[lives.roles]
        share[lives.of_update] = self.state_fraction  # a rank updates the parameters whose state it has
        share[[name in lives.rank_own for name in lives.names]] = 1
        return np.ceil(size_bytes * share).astype(np.int64)


WHOLE = Shares()
"""A single device, which holds everything."""


class Held(NamedTuple):
    """A step, and what a GPU holds of its storages."""

    trace: Trace
    shares: Shares = WHOLE


def zero_shares(stage: int, ranks: int, gathered_bytes: int = 0) -> Shares:
    """ZeRO stage 1, 2 or 3 over so many ranks."""
    if stage not in (1, 2, 3) or ranks < 1:
        raise BadInput(f"ZeRO has stages 1, 2 and 3 over at least one rank, got stage {stage} over {ranks}")
    part = 1 / ranks
    return Shares(part if stage == 3 else 1.0, part if stage >= 2 else 1.0, part, gathered_bytes=gathered_bytes)
