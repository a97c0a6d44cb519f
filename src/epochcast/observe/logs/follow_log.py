"""`ec.follow`: how a run stands, while its log grows."""

import time
from collections.abc import Iterator
from pathlib import Path

from epochcast.observe.logs.log_follower import LogFollower
from epochcast.observe.runs.run_watch import RunWatch
from epochcast.observe.runs.standing import Standing
from epochcast.observe.runs.track_request import TrackRequest
from epochcast.observe.runs.tracker import Tracker
from epochcast.predict.forecast.forecast import Forecast


def follow(
    log: str | Path,
    *,
    total: float | None = None,
    forecast: Forecast | None = None,
    format: str | None = None,
    pattern: str | None = None,
    poll_seconds: float = 1.0,
) -> Iterator[Standing]:
    """Yield how a run stands each time its log has grown, until the run is done.

    The log may not exist yet, be rotated or be packed. `total` is the number of steps where the log does not say it,
    `forecast` the forecast of the job: the estimate starts from it, and knows the price. `format` names the log's
    format, `pattern` is a regular expression with groups like (?P<step>…) [default: recognised].

    >>> import tempfile, epochcast as ec
    >>> folder = tempfile.TemporaryDirectory()
    >>> log = Path(folder.name, "train.log")
    >>> size = log.write_text("".join(f"step {n}/40 took 0.5s\\n" for n in range(41)))
    >>> for standing in ec.follow(log, pattern=r"step (?P<step>\\d+)/(?P<total>\\d+) took (?P<step_seconds>[\\d.]+)s"):
    ...     print(f"{standing.fraction:.0%} done, {standing.remaining_seconds.mid:.0f} s left")
    100% done, 0 s left
    >>> folder.cleanup()
    """
    request = TrackRequest(total=total, format=format, pattern=pattern)
    follower = LogFollower(log, request.format, request.pattern)
    watch = RunWatch(follower.look, Tracker(request.total, forecast))
    try:
        while True:
            standing = watch.tell(follower.reported_at_seconds) if watch.read() else None
            if standing is not None:
                yield standing
                if standing.is_done:
                    return
            time.sleep(poll_seconds)
    finally:
        follower.close()
