"""A queue now: who runs where and when, with intervals, and what each waits for (the queue is queue.toml)."""

from datetime import datetime
from pathlib import Path

import epochcast as ec


def main() -> None:
    at = datetime.fromisoformat("2026-11-17T09:00:00+00:00")
    answer = ec.schedule_plan(Path(__file__).with_name("queue.toml"), at=at)
    clock = answer.clock
    for line in answer.lines:
        first = line.stays[0]
        print(
            f"{line.job} ({line.state}): {first.choice.gpus} GPU on {first.node_type}, "
            f"starts {clock.at(line.start.mid):%a %H:%M}, ends by {clock.at(line.end.high):%a %H:%M}"
        )
        if line.wait is not None:
            print(f"    waits for {line.wait.text(clock)}")
    for use in answer.machines:
        print(f"{use.count} × {use.node_type} now, {use.most} at most")


if __name__ == "__main__":
    main()
