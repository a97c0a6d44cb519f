"""A process of `distributed`: builds a real training step, alone or among others, and runs as many as requested.

Threads are set before anything runs: one per process. MirroredStrategy keeps both replicas in one process, so there it
is one per operator and as many operators at once as there are replicas.
"""

import os
from collections.abc import Callable, Mapping
from time import perf_counter, process_time
from typing import Any

from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.serialization import recipe_from_json
from epochcast.errors import BadInput
from epochcast.measure.bench.bench_children import serve

# The first steps make gradients, optimizer state and, in TensorFlow, the graph.
WARM_UP_STEPS = 2


class Steps:
    """The steps of one process: `alone` without and `together` with exchange, as far as this process has them."""

    def __init__(
        self,
        alone: Callable[[], object] | None,
        together: Callable[[], object] | None,
        weights: Callable[[], list[float]],
        gradient_bytes: int,
    ) -> None:
        self.alone, self.together, self.weights, self.gradient_bytes = alone, together, weights, gradient_bytes


_steps: list[Steps] = []


def answer(order: Mapping[str, Any]) -> Mapping[str, Any]:
    """Set up, run steps, or return the weights."""
    match order["do"]:
        case "start":
            rank, ranks = int(os.environ["RANK"]), int(order["ranks"])
            recipe = recipe_from_json(order["recipe"])
            _steps.append(STARTS[os.environ["ROLE"]](str(order["model"]), recipe, rank, ranks, str(order["store"])))
            return {"gradient_bytes": _steps[0].gradient_bytes}
        case "weights":
            return {"weights": _steps[0].weights()}
        case what:
            return _timed(getattr(_steps[0], what), int(order["count"]))


def _timed(step: Callable[[], object], count: int) -> Mapping[str, Any]:
    seconds, processor_began = [], process_time()
    for _ in range(count):
        began = perf_counter()
        step()
        seconds.append(perf_counter() - began)
    return {"seconds": seconds, "processor_seconds": (process_time() - processor_began) / count}


# ---- PyTorch ------------------------------------------------------------------------------------


def _ddp(model: str, recipe: Recipe, rank: int, ranks: int, store: str) -> Steps:
    """DistributedDataParallel over gloo; the same network once more without it."""
    import torch
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel

    from epochcast.measure.bench.bench_networks import find_network
    from epochcast.measure.bench.torch_step import TorchStep

    if not distributed.is_available():
        raise BadInput("this torch was built without torch.distributed; install a build that has it")
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    network = find_network(model)
    alone, together = (TorchStep(network, recipe, "cpu") for _ in range(2))
    trained = list(together.module.parameters())
    together.module = DistributedDataParallel(together.module)
    for _ in range(WARM_UP_STEPS):
        alone()
        together()
    moved_bytes = sum(p.nbytes for p in trained if p.requires_grad)
    return Steps(alone, together, lambda: [sum(float(p.abs().sum()) for p in trained)], moved_bytes)


# ---- TensorFlow ---------------------------------------------------------------------------------


def _keras_alone(model: str, recipe: Recipe, rank: int, ranks: int, store: str) -> Steps:
    from epochcast.measure.bench.keras_step import KerasStep

    tensorflow = _tensorflow(rank)
    step = KerasStep(model, recipe)
    for _ in range(WARM_UP_STEPS):
        step()
    return Steps(step, None, list, _gradient_bytes(tensorflow, step.model))


def _mirrored(model: str, recipe: Recipe, rank: int, ranks: int, store: str) -> Steps:
    """MirroredStrategy over logical devices that the processor is divided into."""
    tensorflow = _tensorflow(rank, operators=ranks)
    (processor,) = tensorflow.config.list_physical_devices("CPU")
    parts = [tensorflow.config.LogicalDeviceConfiguration() for _ in range(ranks)]
    tensorflow.config.set_logical_device_configuration(processor, parts)
    devices = [f"CPU:{index}" for index in range(ranks)]
    strategy = tensorflow.distribute.MirroredStrategy(
        devices, cross_device_ops=tensorflow.distribute.ReductionToOneDevice()
    )
    return _under(strategy, model, recipe, tensorflow)


def _multi_worker(model: str, recipe: Recipe, rank: int, ranks: int, store: str) -> Steps:
    """MultiWorkerMirroredStrategy; who the others are is in TF_CONFIG."""
    tensorflow = _tensorflow(rank)
    ring = tensorflow.distribute.experimental.CommunicationImplementation.RING
    options = tensorflow.distribute.experimental.CommunicationOptions(implementation=ring)
    strategy = tensorflow.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    return _under(strategy, model, recipe, tensorflow)


def _under(strategy: Any, model: str, recipe: Recipe, tensorflow: Any) -> Steps:
    from epochcast.measure.bench.keras_step import KerasStep

    with strategy.scope():
        step = KerasStep(model, recipe)
    run = step._run.python_function  # type: ignore[attr-defined]
    shape, targets = step.inputs.shape, step.targets
    fed = strategy.experimental_distribute_values_from_function(lambda _: tensorflow.random.normal(shape))
    compiled = tensorflow.function(lambda inputs: strategy.run(run, args=(inputs, targets)))

    def together() -> None:
        for loss in strategy.experimental_local_results(compiled(fed)):
            loss.numpy()  # waits until it is computed

    def weights() -> list[float]:
        sums: dict[int, float] = {}
        for variable in step.model.trainable_variables:
            for replica, value in enumerate(strategy.experimental_local_results(variable.value)):
                sums[replica] = sums.get(replica, 0.0) + float(tensorflow.reduce_sum(tensorflow.abs(value)))
        return list(sums.values())

    for _ in range(WARM_UP_STEPS):
        together()
    return Steps(None, together, weights, _gradient_bytes(tensorflow, step.model))


def _tensorflow(rank: int, operators: int = 1) -> Any:
    from epochcast.measure.bench.keras_step import import_keras

    tensorflow, _ = import_keras()
    tensorflow.config.threading.set_intra_op_parallelism_threads(1)
    tensorflow.config.threading.set_inter_op_parallelism_threads(operators)
    tensorflow.random.set_seed(rank)
    return tensorflow


def _gradient_bytes(tensorflow: Any, model: Any) -> int:
    return sum(v.value.dtype.size * int(tensorflow.size(v.value)) for v in model.trainable_variables)


STARTS: Mapping[str, Callable[[str, Recipe, int, int, str], Steps]] = {
    "ddp": _ddp,
    "keras_alone": _keras_alone,
    "mirrored": _mirrored,
    "multi_worker": _multi_worker,
}

if __name__ == "__main__":
    serve(answer)
