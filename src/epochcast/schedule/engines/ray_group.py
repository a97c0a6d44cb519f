"""Holds a placement group while a program of Ray runs: `python ray_group.py ABOUT WORD…`, inside a job of Ray.

ABOUT is JSON: the bundles, the node they are to be on, the name of the group. The group goes when this process does. It
imports nothing of epochcast.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

NAMESPACE = "epochcast"


def main(about: str, command: Sequence[str]) -> int:
    """Reserve, run, and give the command's exit code."""
    import ray
    from ray.util.placement_group import placement_group

    told = json.loads(about)
    ray.init(address="auto", namespace=NAMESPACE, log_to_driver=False)
    pinned = None if told["node"] is None else [{"ray.io/node-id": told["node"]}] * len(told["bundles"])
    group = placement_group(told["bundles"], strategy="STRICT_PACK", name=told["name"], bundle_label_selector=pinned)
    ray.get(group.ready())
    # Ray signals the command as well; this waits for it.
    signal.signal(signal.SIGTERM, lambda *_: None)
    code = subprocess.Popen(list(command), env=os.environ).wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
