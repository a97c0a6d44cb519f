"""A program of Ray whose workers are on the GPUs of its placement group: where they were, as JSON."""

import json
import os
from pathlib import Path
from typing import Any


def main() -> None:
    """Ask a worker in every bundle."""
    import ray
    from ray.util import get_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    ray.init(namespace=os.environ["EPOCHCAST_RAY_NAMESPACE"], log_to_driver=False)
    group: Any = get_placement_group(os.environ["EPOCHCAST_PLACEMENT_GROUP"])

    def where() -> tuple[str, str]:
        return ray.get_runtime_context().get_node_id(), os.environ["CUDA_VISIBLE_DEVICES"]

    worker: Any = ray.remote(num_gpus=1, num_cpus=0)(where)
    places = [
        worker.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index))
        for index in range(len(group.bundle_specs))
    ]
    Path("places.json").write_text(json.dumps(ray.get([place.remote() for place in places])))


if __name__ == "__main__":
    main()
