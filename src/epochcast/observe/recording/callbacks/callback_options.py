"""What a user gives to a callback; the rest is the framework's."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from epochcast.observe.recording.recorded_run import Track
from epochcast.observe.recording.sink import Destination
from epochcast.observe.recording.track_loop import track


@dataclass(frozen=True, slots=True)
class CallbackOptions:
    """Kept until the training begins; nothing is opened before, so that a callback can be copied and sent."""

    job: str | None = None
    to: Destination | Sequence[Destination] | None = None
    show: bool = False
    rank: int | None = None
    attempt: int | None = None

    def begin(self, *, is_first_rank: bool = True, **announced: Any) -> Track:
        """The recording, as the training begins. Ranks beside the first are silent where `rank` was not given."""
        to = self.to if is_first_rank or self.rank is not None else ()
        show = self.show and (is_first_rank or self.rank is not None)
        return track(job=self.job, to=to, show=show, rank=self.rank, attempt=self.attempt, **announced)


class Recording:
    """What all callbacks have: the user's options, and the recording while there is one."""

    def __init__(
        self,
        job: str | None = None,
        *,
        to: Destination | Sequence[Destination] | None = None,
        show: bool = False,
        rank: int | None = None,
        attempt: int | None = None,
    ) -> None:
        super().__init__()
        self.options = CallbackOptions(job, to, show, rank, attempt)
        self.run: Track | None = None
