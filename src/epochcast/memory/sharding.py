"""What one rank holds of a step, as fractions of what a device alone would hold.

ZeRO (Rajbhandari et al. 2020) shards the optimizer's state (stage 1), gradients too (2), parameters too (3, FSDP);
parameters are then gathered for as long as they are used: `gathered_bytes` at a time. DistributedDataParallel keeps its
gradients twice, once in buckets that are reduced together.
"""

from dataclasses import dataclass

import numpy as np

from epochcast.errors import BadInput
from epochcast.memory.lifetimes import BEFORE, Integers, Lifetimes, Role


@dataclass(frozen=True, slots=True)
class Shares:
    """Fractions of parameters, gradients, optimizer state and activations, and what a rank holds on top."""

    parameter_fraction: float = 1.0
    gradient_fraction: float = 1.0
    state_fraction: float = 1.0
    activation_fraction: float = 1.0
    gathered_bytes: int = 0
    has_buckets: bool = False

    def __post_init__(self) -> None:
        for name in ("parameter_fraction", "gradient_fraction", "state_fraction", "activation_fraction"):
            if not getattr(self, name) >= 0:
                raise BadInput(f"{name} must be at least 0, got {getattr(self, name)}")

    def of(self, lives: Lifetimes) -> Lifetimes:
        """The lifetimes with buckets and gathered parameters."""
        held = {Role.PARAMETERS: self.gathered_bytes}
        if self.has_buckets:
            held[Role.BUCKETS] = lives.total_bytes(Role.GRADIENTS)
        added = [(role, size) for role, size in held.items() if size]
        if not added:
            return lives
        count = len(added)
        return lives.joined(
            tuple(f"{role.label}#rank" for role, _ in added),
            np.array([role for role, _ in added], dtype=np.int64),
            np.array([size for _, size in added], dtype=np.int64),
            np.zeros(count, dtype=np.int64),
            np.full(count, BEFORE),
            np.full(count, lives.ops),
        )

    def scaled(self, size_bytes: Integers, lives: Lifetimes) -> Integers:
        """Every storage's share."""
        fractions = np.ones(len(Role))
        fractions[Role.PARAMETERS] = self.parameter_fraction
        fractions[Role.GRADIENTS] = self.gradient_fraction
        fractions[Role.OPTIMIZER_STATE] = self.state_fraction
        fractions[[Role.ACTIVATIONS, Role.TEMPORARIES, Role.AUTOCAST_COPIES]] = self.activation_fraction
        if np.all(fractions == 1):
            return size_bytes
        share = fractions[lives.roles]
        share[lives.of_update] = self.state_fraction  # a rank updates what it has the state of
        share[[name.endswith("#rank") for name in lives.names]] = 1
        return np.ceil(size_bytes * share).astype(np.int64)


WHOLE = Shares()
"""A device alone."""


def zero_shares(stage: int, ranks: int, gathered_bytes: int = 0) -> Shares:
    """ZeRO stage 1, 2 or 3 over so many ranks."""
    if stage not in (1, 2, 3) or ranks < 1:
        raise BadInput(f"ZeRO has stages 1, 2 and 3 over at least one rank, got stage {stage} over {ranks}")
    part = 1 / ranks
    return Shares(part if stage == 3 else 1.0, part if stage >= 2 else 1.0, part, gathered_bytes=gathered_bytes)
