"""Two real steps: peak bytes at two batch sizes, for the thesis' equations 4.7–4.9 (`decide/advise/thesis_rule.py`
solves them).

The user's module is built with real weights and trained for a few steps on random data (`torch_step`). On CUDA the
allocator's own counter is read (reserved bytes, as in the thesis); elsewhere every allocation and release that torch's
profiler reports is summed. The processor has neither workspaces nor a context, so its X is lower than a GPU's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from epochcast.base.record import Record, paths
from epochcast.decide.advise.thesis_rule import PROBE_BATCHES, Coefficients
from epochcast.describe.capture.torch.traceback_notes import explained
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput, MissingExtra, UnknownName
from epochcast.measure.bench.subprocess_bench import is_user_code, probed_apart

if TYPE_CHECKING:
    from epochcast.measure.bench.bench_networks import BenchNetwork
    from epochcast.measure.bench.torch_step import TorchStep


@dataclass(frozen=True, slots=True)
class Probe:
    """The memory of two real steps, and by which counter."""

    coefficients: Coefficients
    counter: str


@dataclass(frozen=True, slots=True)
class ProbeAnswer(Record):
    """Under `probe` in the JSON: the coefficients, and the largest batch that fits in the memory of a device."""

    probe: Probe
    memory_bytes: float

    @property
    def max_batch(self) -> int:
        """The largest batch that fits."""
        return self.probe.coefficients.largest_batch(self.memory_bytes)

    json_paths: ClassVar[Mapping[str, str]] = {
        **paths("max_batch", counter="probe.counter"),
        **{key: f"probe.coefficients.{path}" for key, path in Coefficients.json_paths.items()},
    }


def probe_memory(
    reference: object,
    input_shape: tuple[int, ...] | None = None,
    *,
    optimizer: str = "sgd",
    batches: tuple[int, int] = PROBE_BATCHES,
) -> Probe:
    """Run the model's real step at two batches; the user's code (`file.py:factory`) runs in a process of its own."""
    if isinstance(reference, str) and is_user_code(reference):
        return probed_apart(reference, input_shape, optimizer, batches)
    return probe_here(reference, input_shape, optimizer=optimizer, batches=batches)


def probe_here(
    reference: object, input_shape: tuple[int, ...] | None, *, optimizer: str, batches: tuple[int, int]
) -> Probe:
    """The same in this process."""
    try:
        import torch
    except ModuleNotFoundError:
        raise MissingExtra("torch") from None
    from epochcast.measure.bench.torch_step import WARM_UP_STEPS, TorchStep

    has_cuda = torch.cuda.is_available()
    peak_bytes = []
    input_bytes = output_bytes = 0.0
    with explained("the probed step"):
        network = _network(reference, input_shape)
        for batch in batches:
            step = TorchStep(network, Recipe(batch, optimizer=optimizer), "cuda" if has_cuda else "cpu")
            for _ in range(WARM_UP_STEPS):
                step()
            peak_bytes.append(float(_reserved_bytes(step) if has_cuda else step.peak_bytes()))
            input_bytes, output_bytes = step.input_bytes / batch, step.output_bytes / batch
            del step
    counter = "CUDA allocator, reserved" if has_cuda else "processor's allocator, by torch's profiler"
    return Probe(Coefficients(batches, (peak_bytes[0], peak_bytes[1]), input_bytes, output_bytes), counter)


def _reserved_bytes(step: "TorchStep") -> int:
    """The peak of CUDA's caching allocator, which starts with an empty cache."""
    import torch

    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(2):  # from the second step on the allocator's blocks do not change
        step()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_reserved())


def _network(reference: object, input_shape: tuple[int, ...] | None) -> "BenchNetwork":
    from torch.nn import Module

    from epochcast.describe.capture.torch.example_inputs import example_for
    from epochcast.measure.bench.bench_networks import BenchNetwork, find_network

    if isinstance(reference, Module):
        name = type(reference).__name__
        return BenchNetwork(name, lambda: (reference, example_for(reference, input_shape, name)), input_shape)
    try:
        return find_network(str(reference), input_shape)
    except UnknownName as unknown:
        raise BadInput(f"a probe runs real steps of a torch module: {unknown}; or name a file.py:factory") from None
