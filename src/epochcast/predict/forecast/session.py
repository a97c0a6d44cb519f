"""What forecasts of one question share: the cost model that answers them, and what was worked out on the way.

A plan, a table of scaling or an evaluation makes one session and asks it for every forecast; a server may keep one. It
is safe to share between threads.
"""

from collections.abc import Hashable
from pathlib import Path

from epochcast.base.caching import Cache
from epochcast.describe.capture.capture_cache import CachedModel
from epochcast.describe.capture.frozen_encoders import with_encoders
from epochcast.describe.capture.model import Model
from epochcast.describe.capture.model_reference import ModelReference
from epochcast.describe.capture.resolve import find_model
from epochcast.describe.capture.sample_contents import CACHED, find_encoders
from epochcast.describe.capture.workload import Workload
from epochcast.describe.graph.language_model import is_language_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.hardware.device import Device
from epochcast.predict.cost.calibrated import calibrated_device, hints, model_in, with_profile
from epochcast.predict.cost.cost_model import CostModel, Costs
from epochcast.predict.cost.cost_models import find_cost_model
from epochcast.predict.cost.wrapped import ANSWERS, CachedCosts, CostsKey, Scaled
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.step import StepForecast
from epochcast.predict.memory.peak import PeakMemory

# Batches, devices and strategies of one question; more are worked out again.
NETWORKS, TRACES, DEVICES, STEPS = 8, 64, 256, 1024


class Session:
    """A cost model and caches; `steps` and `memories` serve every offer of the same GPUs.

    `profile` is a file of `epochcast fit` to answer with. `with_own_profiles`: whether what the user measured of a
    device (`calibrate --save`, `fit`) stands in for the model; an evaluation of the model itself leaves it out.
    `with_layer_steps`: whether steps of Keras may be told from single layers instead of kernels.

    >>> import epochcast as ec
    >>> session, job = ec.Session(), ec.Job("resnet50", batch=64)
    >>> by_batch = {batch: ec.forecast(job, device="T4", batch=batch, session=session) for batch in (32, 64)}
    >>> by_batch[64].step_seconds.mid > by_batch[32].step_seconds.mid
    True
    """

    def __init__(
        self,
        cost_model: CostModel | None = None,
        *,
        profile: Path | None = None,
        with_own_profiles: bool = True,
        with_layer_steps: bool = True,
        allow_code: bool = True,
    ) -> None:
        self._given = cost_model or find_cost_model()
        self._profile = profile
        self._with_own_profiles = with_own_profiles
        self._allow_code = allow_code
        self._factor = 1.0
        self._spread: tuple[float, float] | None = None
        self.with_layer_steps = with_layer_steps
        self._networks: Cache[Hashable, Model] = Cache(NETWORKS)
        self._languages: Cache[tuple[Model], bool] = Cache(NETWORKS)
        self._models: Cache[Device, CostModel] = Cache(DEVICES)
        self._devices: Cache[Device, Device] = Cache(DEVICES)
        self._traces: Cache[tuple[Model, Recipe], Trace] = Cache(TRACES)
        # One for all devices: with one for each, a long evaluation would keep everything.
        self._costs: Cache[CostsKey, Costs] = Cache(ANSWERS)
        self.steps: Cache[Hashable, StepForecast] = Cache(STEPS)
        self.memories: Cache[Hashable, PeakMemory] = Cache(STEPS)

    def scaled(self, factor: float, spread: tuple[float, float] | None = None) -> "Session":
        """One in which all kernels take `factor` times as long, with `spread` as the factors of their interval."""
        session = Session(
            self._given,
            profile=self._profile,
            with_own_profiles=self._with_own_profiles,
            with_layer_steps=False,
            allow_code=self._allow_code,
        )
        session._factor = self._factor * factor
        session._spread = spread
        session._networks, session._languages, session._traces = self._networks, self._languages, self._traces
        return session

    def model(self, job: Job) -> Model:
        """The network of a job at its longest samples, looked for once; again where its files or the live model have
        changed since.
        """
        shape = job.longest_shape
        key = job.model, shape, job.aux, job.contents, _state(job.model)

        def build() -> Model:
            return find_model(job.model, shape, aux=job.aux, allow_code=self._allow_code, contents=job.contents)

        model = self._networks.get(key, build)
        if isinstance(model, CachedModel) and model.is_stale:
            self._networks.forget(key)
            model = self._networks.get(key, build)
        return self._encoded(model, job)

    def _encoded(self, model: Model, job: Job) -> Model:
        """The network, with the frozen encoders that run in front of it."""
        if find_encoders(job.encoders) == CACHED:
            return model
        key = model, job.encoders
        return self._networks.get(key, lambda: with_encoders(model, str(job.model), job.longest_shape, job.encoders))

    def is_language_model(self, job: Job) -> bool:
        """Whether the network of a job reads tokens and scores a vocabulary."""
        model = self.model(job)
        return self._languages.get((model,), lambda: is_language_model(model.graph(1)))

    def trace(self, model: Model, recipe: Recipe) -> Trace:
        """One step of a network."""
        return self._traces.get((model, recipe), lambda: model.trace(recipe))

    def cost_model(self, device: Device) -> CostModel:
        """Who answers for a device."""
        return self._models.get(device, lambda: self._cost_model(device))

    def measured_device(self, device: Device) -> Device:
        """The device as the user measured it, else as its data sheet has it."""
        if not self._with_own_profiles:
            return device
        return self._devices.get(device, lambda: calibrated_device(self._costing(device), device))

    def hints(self, device: Device, math: str) -> tuple[str, ...]:
        """What would make answers for a device better, for products in a math."""
        return hints(self._costing(device), device, math) if self._with_own_profiles else ()

    def _costing(self, device: Device) -> CostModel:
        return self._given if self._profile is None else model_in(self._profile, device)

    def _cost_model(self, device: Device) -> CostModel:
        costing = self._costing(device)
        own = with_profile(costing, device) if self._with_own_profiles else costing
        is_plain = self._factor == 1 and self._spread is None
        return CachedCosts(own if is_plain else Scaled(own, self._factor, self._spread), self._costs)


def _state(model: object) -> Hashable:
    """What tells that a model changed: when its file was written, or what a live module is made of and trains."""
    if isinstance(model, str):
        file = Path(ModelReference.of(model).file)
        try:
            status = file.stat()
        except (OSError, ValueError):
            return None
        return status.st_mtime_ns, status.st_size
    model = model.model if isinstance(model, Workload) else model
    parameters = getattr(model, "parameters", None)
    if not callable(parameters) or isinstance(model, type):
        return None
    return repr(model), tuple((tuple(each.shape), each.requires_grad) for each in parameters())
