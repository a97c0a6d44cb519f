"""How fast a decoder generates text on some GPUs, and what it needs: the answer of `--mode generate`.

GPUs are cut into engines of `tensor_parallel` GPUs, which share out sequences and requests evenly. One engine is
simulated (`continuous_batching`) on lengths drawn with a fixed seed; without a number of requests it gets eight times
as many as it runs at once, and the answer is its throughput while the queue lasts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import ClassVar

from epochcast.base.display import Displayed
from epochcast.base.frames import Framed
from epochcast.base.notes import Note
from epochcast.base.record import Record
from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.predict.decode.continuous_batching import BatchedRun, simulate
from epochcast.predict.decode.decode_rates import EngineRate, decode_rates
from epochcast.predict.decode.decode_step import DecodeCost, StepLoad, decode_cost
from epochcast.predict.decode.decoder_shape import DecoderShape, decoder_shape
from epochcast.predict.decode.generation_memory import GenerationMemory, cached_bytes, generation_memory, most_sequences
from epochcast.predict.forecast.generation_options import GENERATE
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.response_lengths import ResponseLengths, response_lengths
from epochcast.predict.forecast.session import Session
from epochcast.predict.memory.device_context import usable_bytes
from epochcast.predict.post_training.context_lengths import check_context
from epochcast.predict.post_training.generation_request import engine_name, formats_of

ROUNDS = 8
"""Requests per slot that are simulated where nobody says how many there are."""
MOST_SIMULATED = 8192
"""More requests of one engine take as long as these do at a steady rate."""
USUAL_PROMPT, USUAL_RESPONSE = 512, "512"
FEW_SEQUENCES = 16
"""An engine gets more GPUs until so many sequences fit, where nobody says how many GPUs share its layers."""
SEED = 0


@dataclass(frozen=True, repr=False)
class Generation(Displayed, Framed, Record):
    """Text generated on some GPUs, as numbers.

    `tokens_per_second` counts generated tokens over all GPUs; `token_seconds` is one step of an engine with all its
    sequences, so the seconds between two tokens of a sequence. `request_seconds` run from the start of a request's
    prompt to its last token, on average; `longest_request_seconds` is the middle of the slowest one. `seconds` are
    those of all `requests`; None where nobody said how many. `concurrency` is what runs at once over all GPUs,
    `most_concurrency` what the cache has room for. `step_parts` are fractions of the time. `reserved_bytes` is what the
    engine takes at its start, `peak_bytes` what weights, cache, activations and the process need.

    >>> import epochcast as ec
    >>> isinstance(ec.generate("llama-3.1-8b", device="H100", prompt=512, response="128"), ec.Generation)
    True
    """

    view: ClassVar[str] = "generation"
    json_version: ClassVar[int | None] = 1
    json_also: ClassVar[tuple[str, ...]] = (
        "fits",
        "tokens_per_second_per_gpu",
        "dollars",
        "dollars_per_million_tokens",
    )

    model: str
    device: str
    gpus: int
    nodes: int
    mode: str
    engine: str
    engines: int
    tensor_parallel: int
    weights: str
    cache: str
    prompt_tokens: int
    response: str
    response_tokens_mean: float
    response_tokens_longest: int
    concurrency: int
    most_concurrency: int
    requests: int | None
    tokens_per_second: Interval
    token_seconds: Interval
    prompt_seconds: Interval
    request_seconds: Interval
    longest_request_seconds: float
    seconds: Interval | None
    step_parts: Mapping[str, float] = field(hash=False)
    peak_bytes: Interval
    peak_breakdown: Mapping[str, int] = field(hash=False)
    reserved_bytes: int
    memory_bytes: int
    parameters: int
    dollars_per_hour: float | None
    price_source: str | None
    device_measured: bool
    assumed: Mapping[str, str | int | float] = field(default_factory=dict, hash=False)
    warnings: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether weights, cache and activations are more likely than not on a GPU."""
        return self.concurrency > 0 and self.peak_bytes.mid <= self.memory_bytes

    @property
    def tokens_per_second_per_gpu(self) -> float:
        """The share of each GPU."""
        return self.tokens_per_second.mid / self.gpus

    @property
    def dollars(self) -> Interval | None:
        """Of all requests; None where their number or the price is unknown."""
        if self.seconds is None or self.dollars_per_hour is None:
            return None
        return self.seconds.scaled(self.dollars_per_hour / 3600)

    @property
    def dollars_per_million_tokens(self) -> Interval | None:
        """Of generated tokens."""
        if self.dollars_per_hour is None:
            return None
        rate = self.tokens_per_second
        low, mid, high = (1e6 / each / 3600 * self.dollars_per_hour for each in (rate.high, rate.mid, rate.low))
        return Interval(low, mid, high, rate.coverage)

    def records(self) -> tuple[dict[str, object], ...]:
        """One row: all its numbers."""
        return (self.as_dict(),)


@dataclass(frozen=True)
class EnginePlan:
    """One engine of a job: its cost, how many sequences it runs, how long prompts and responses are."""

    cost: DecodeCost
    engine: EngineRate
    prompt: int
    lengths: ResponseLengths
    slots: int
    room: int
    memory_fraction: float

    @property
    def memory(self) -> GenerationMemory:
        """Of one of its GPUs."""
        return self.memory_of(self.slots)

    def memory_of(self, sequences: int) -> GenerationMemory:
        """With so many sequences of a mean length."""
        mean = self.prompt + self.lengths.mean
        return generation_memory(self.cost, max(1, sequences), mean, self.prompt, self.engine, self.memory_fraction)

    def run(self, requests: int, *, prompts_computed: float = 1.0, seed: int = SEED) -> BatchedRun:
        """So many requests, one engine."""
        drawn = self.lengths.drawn(min(requests, MOST_SIMULATED), seed)
        return simulate(self.cost, self.prompt, drawn.tolist(), self.slots, prompts_computed=prompts_computed)

    def interval(self, seconds: float) -> Interval:
        """Around seconds of it: measured steps of devices that were left out."""
        return Interval(seconds * self.engine.low, seconds, seconds * self.engine.high)


def decoder_of(job: Job, session: Session) -> DecoderShape:
    """The decoder of a job; raises where prompt and longest response are longer than its context."""
    prompt, lengths = _lengths(job)
    asked = replace(job, input_shape=(prompt + lengths.longest,), lengths=None)
    model = session.model(asked)
    check_context(model.name, prompt, lengths.longest)
    return decoder_shape(model.graph(1))


def engine_plan(job: Job, placement: Placement, session: Session, gpus: int) -> EnginePlan:
    """The engine that a job runs on `gpus` GPUs: as few share its layers as hold it, unless the job says how many."""
    device = placement.device
    name = engine_name(job, device)
    engine = decode_rates().eager_engine(name) if job.engine_eager else decode_rates().engine(name)
    shape = decoder_of(job, session)
    if not engine.is_batching and any(each.experts > 1 for each in shape.products):
        raise BadInput(f"{engine.name} runs experts one by one, which is not modelled: use --engine vllm")
    degrees = [job.engine_tp] if job.engine_tp else [d for d in (1, 2, 4, 8, 16) if gpus % d == 0]
    if job.engine_tp and gpus % job.engine_tp:
        raise BadInput(f"{gpus} GPUs cannot be cut into engines of {job.engine_tp} (engine_tp)")
    plan = None
    for degree in degrees:
        plan = _plan(job, placement, shape, engine, degree, gpus // degree)
        if plan.room >= min(_limit(job, plan.engine, gpus // degree), FEW_SEQUENCES):
            break
    assert plan is not None
    return plan


def _plan(
    job: Job, placement: Placement, shape: DecoderShape, engine: EngineRate, degree: int, engines: int
) -> EnginePlan:
    (prompt, lengths), device = _lengths(job), placement.device
    link = placement.group.inner if degree <= placement.ranks_per_node else placement.group.outer
    cost = decode_cost(shape, device, link, degree, formats_of(job, device), engine, decode_rates())
    fraction = job.engine_memory or engine.memory_fraction
    limit = _limit(job, engine, engines)
    room = most_sequences(cost, prompt + lengths.mean, prompt, limit, fraction)
    return EnginePlan(cost, engine, prompt, lengths, max(1, min(room, limit)), room, fraction)


def _limit(job: Job, engine: EngineRate, engines: int) -> int:
    """Sequences that an engine runs at once, memory aside."""
    return engine.most_sequences if job.concurrency is None else ceil(job.concurrency / engines)


def forecast_generation(job: Job, placement: Placement, session: Session | None = None) -> Generation:
    """How fast a job's requests are answered at a place."""
    session = session or Session()
    plan = engine_plan(job, placement, session, placement.gpus)
    engines = placement.gpus // plan.cost.gpus
    requests = plan.slots * ROUNDS if job.requests is None else max(1, ceil(job.requests / engines))
    run = plan.run(requests)
    tokens = _tokens_per_second(job, run) * engines
    full = plan.cost.step(_full_load(plan)).seconds
    memory = plan.memory
    peak, spread = float(memory.needed_bytes), decode_rates().memory_spread
    return Generation(
        model=plan.cost.shape.model,
        device=placement.device.name,
        gpus=placement.gpus,
        nodes=placement.nodes,
        mode=GENERATE,
        engine=plan.engine.name,
        engines=engines,
        tensor_parallel=plan.cost.gpus,
        weights=formats_of(job, placement.device)[0],
        cache=formats_of(job, placement.device)[1],
        prompt_tokens=plan.prompt,
        response=plan.lengths.text,
        response_tokens_mean=plan.lengths.mean,
        response_tokens_longest=plan.lengths.longest,
        concurrency=(plan.slots if plan.room else 0) * engines,
        most_concurrency=_room(plan) * engines,
        requests=job.requests,
        tokens_per_second=Interval(tokens / plan.engine.high, tokens, tokens / plan.engine.low),
        token_seconds=plan.interval(full),
        prompt_seconds=plan.interval(plan.cost.step(StepLoad(0, 0, plan.prompt, plan.prompt)).seconds),
        request_seconds=plan.interval(sum(run.request_seconds) / len(run.request_seconds)),
        longest_request_seconds=max(run.request_seconds),
        seconds=None if job.requests is None else plan.interval(_all_seconds(run, requests)),
        step_parts=run.parts.shares(),
        peak_bytes=Interval(peak * spread[0], peak, peak * spread[1]),
        peak_breakdown={
            "weights": memory.weights_bytes,
            "cache": memory.cache_bytes,
            "activations": memory.activation_bytes,
            "process": memory.context_bytes,
        },
        reserved_bytes=_reserved(plan, placement),
        memory_bytes=placement.device.memory_bytes,
        parameters=plan.cost.shape.parameters,
        dollars_per_hour=placement.dollars_per_hour,
        price_source=placement.price_source,
        device_measured=decode_rates().is_measured(placement.device),
        assumed=_assumed(job, plan),
        warnings=tuple(_warnings(job, plan, placement, engines)),
    )


def _lengths(job: Job) -> tuple[int, ResponseLengths]:
    return job.prompt or USUAL_PROMPT, response_lengths(job.response or USUAL_RESPONSE)


def _full_load(plan: EnginePlan) -> StepLoad:
    return StepLoad(plan.slots, plan.slots * (plan.prompt + plan.lengths.mean / 2))


def _tokens_per_second(job: Job, run: BatchedRun) -> float:
    """Of one engine: until the last request ends, or while requests keep coming."""
    return run.steady_tokens_per_second if job.requests is None else run.tokens_per_second


def _all_seconds(run: BatchedRun, requests: int) -> float:
    """The simulated requests, and others at the steady rate."""
    more = max(0, requests - len(run.request_seconds)) * run.tokens / len(run.request_seconds)
    return run.seconds + more / run.steady_tokens_per_second


def _room(plan: EnginePlan) -> int:
    """Sequences of a mean length that the cache of an engine holds, whatever its limit."""
    return int(plan.memory.cache_room_bytes / cached_bytes(plan.cost, plan.prompt + plan.lengths.mean))


def _reserved(plan: EnginePlan, placement: Placement) -> int:
    """What an engine with a paged cache takes at its start."""
    memory = plan.memory
    if not plan.engine.is_batching:
        return memory.needed_bytes
    return min(usable_bytes(placement.device), memory.needed_bytes - memory.cache_bytes + memory.cache_room_bytes)


def _assumed(job: Job, plan: EnginePlan) -> dict[str, str | int | float]:
    """What nobody said, with the values taken instead."""
    assumed: dict[str, str | int | float] = {}
    if job.prompt is None:
        assumed["prompt"] = plan.prompt
    if job.response is None:
        assumed["response"] = plan.lengths.text
    if job.engine_tp is None:
        assumed["engine_tp"] = plan.cost.gpus
    if job.engine_memory is None and plan.engine.is_batching:
        assumed["engine_memory"] = plan.memory_fraction
    return assumed


def _warnings(job: Job, plan: EnginePlan, placement: Placement, engines: int) -> list[str]:
    notes: list[str] = []
    asked = job.concurrency
    if not plan.room:
        gpus = "GPU" if plan.cost.gpus == 1 else f"{plan.cost.gpus} GPUs"
        notes.append(Note(f"The weights leave no room for one sequence on {gpus}: use more GPUs (engine_tp) or fp8."))
    elif asked is not None and plan.slots * engines < asked:
        notes.append(Note(f"The cache has room for {plan.slots * engines:,} of {asked:,} sequences; the others wait."))
    if not decode_rates().is_measured(placement.device):
        notes.append(Note(f"No measured decode kernels for {placement.device.name}: using those of similar GPUs."))
    if plan.cost.weights.name == "int4" and any(each.experts > 1 for each in plan.cost.shape.products):
        notes.append(Note("4-bit experts ran up to 4× slower than this in SGLang 0.4: measure before you rely on it."))
    return notes
