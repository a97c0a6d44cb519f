"""How long DPO, PPO, GRPO and DAPO take, part by part, and what fills the GPU in each phase.

    step = generation + reward + old log-probabilities + reference + values + update (+ critic) + weight sync

on the same GPUs in turn (colocated) or with GPUs of their own for generation (split). Asynchronous training overlaps
generation with the rest, and a step takes as long as the slower of the two:

    step = max(generation, the rest)        generation at its steady rate: it never waits for the longest response

A split without staleness runs one behind the other. Colocated engines share the GPU with weights and optimizer state,
unless those are offloaded, and have so much less room for the cache.
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
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.post_training_options import DAPO, NONE, PPO, SAME
from epochcast.predict.forecast.response_lengths import response_lengths
from epochcast.predict.forecast.session import Session
from epochcast.predict.memory.device_context import usable_bytes
from epochcast.predict.post_training.generation import EnginePlan, decoder_of, engine_plan
from epochcast.predict.post_training.rl_constants import (
    FORWARD,
    GENERATION,
    GENERATION_EAGER,
    UPDATE,
    RlConstants,
    rl_constants,
)
from epochcast.predict.post_training.rl_phases import (
    PhaseMemory,
    Responses,
    StepPart,
    forward_peak_bytes,
    forward_seconds,
    frozen_job,
    part_of,
    training_placement,
    update_memory,
    update_seconds,
)

SEEDS = 4
"""Engines that are simulated; the slowest of them sets when generation ends."""
USUAL_REWARD_SECONDS = 1e-3
"""A rule that compares an answer: 0.06 to 1.3 s for 320 to 5,120 responses in verl's logs, so 0.2 to 0.3 ms each."""
LEAST_FRACTION = 0.05
USUAL_FRACTION = 0.6
"""Of a GPU for a colocated engine: gpu_memory_utilization in verl's GRPO examples."""


@dataclass(frozen=True, repr=False)
class PostTraining(Displayed, Framed, Record):
    """A post-training job at a place, as numbers.

    `step_seconds` is one step: prompts, their responses, and the update. `parts` sum to its middle; of asynchronous
    training, "generation" is the time that the trainer waits for it, and `overlapped_seconds` is what ran beside.
    Tokens per second count prompts and responses that were trained on. `steps` and `total_seconds` are None where
    nobody said how many prompts there are.

    >>> import epochcast as ec
    >>> asked = {"algorithm": "dpo", "prompts_per_step": 8, "prompt": 256, "response": "256"}
    >>> answer = ec.post_train("llama3_2_1b", device="H100", **asked)
    >>> [part.name for part in answer.parts]
    ['reference', 'update']
    """

    view: ClassVar[str] = "post_training"
    json_version: ClassVar[int | None] = 1
    json_also: ClassVar[tuple[str, ...]] = ("fits", "tokens_per_second_per_gpu", "dollars")

    model: str
    device: str
    gpus: int
    nodes: int
    algorithm: str
    strategy: str
    precision: str
    optimizer: str
    lora: int
    engine: str | None
    tensor_parallel: int | None
    generation_gpus: int | None
    staleness: int
    prompts_per_step: int
    responses_per_step: int
    prompt_tokens: int
    response_tokens_mean: float
    response_tokens_longest: int
    micro_batch: int
    reference: str
    critic: str
    reward: str
    in_flight: int | None
    step_seconds: Interval
    parts: tuple[StepPart, ...]
    overlapped_seconds: float
    memory: tuple[PhaseMemory, ...]
    peak_bytes: Interval
    memory_bytes: int
    steps: int | None
    total_seconds: Interval | None
    parameters: int
    dollars_per_hour: float | None
    price_source: str | None
    assumed: Mapping[str, str | int | float] = field(default_factory=dict, hash=False)
    warnings: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether every phase is more likely than not on a GPU."""
        return all(phase.fits for phase in self.memory)

    @property
    def tokens_per_second_per_gpu(self) -> float:
        """Prompts and responses by the time of a step and all GPUs."""
        tokens = self.responses_per_step * (self.prompt_tokens + self.response_tokens_mean)
        return tokens / self.step_seconds.mid / self.gpus

    @property
    def dollars(self) -> Interval | None:
        """Of the job; None where its length or the price is unknown."""
        if self.total_seconds is None or self.dollars_per_hour is None:
            return None
        return self.total_seconds.scaled(self.dollars_per_hour / 3600)

    def part(self, name: str) -> float:
        """Seconds of a part; 0 where the step has none of it."""
        return next((part.seconds for part in self.parts if part.name == name), 0.0)

    def records(self) -> tuple[dict[str, object], ...]:
        """One row: all its numbers."""
        return (self.as_dict(),)


@dataclass(frozen=True)
class _Question:
    """A job, where it trains and generates, and what one step works on."""

    job: Job
    placement: Placement
    training: Placement
    session: Session
    responses: Responses
    prompts: int
    constants: RlConstants
    assumed_batch: int | None = None

    @property
    def reference(self) -> str:
        """The frozen reference by its name."""
        return self.job.reference_model or (NONE if self.job.algorithm == DAPO else SAME)

    @property
    def critic(self) -> str:
        """The critic by its name."""
        return (self.job.critic or SAME) if self.job.algorithm == PPO else NONE


def forecast_post_training(
    job: Job, placement: Placement, session: Session | None = None, constants: RlConstants | None = None
) -> PostTraining:
    """How long a post-training job takes at a place, what it needs and what it costs; by the shipped constants, unless
    others are given.
    """
    question = _question(job, placement, session or Session(), constants or rl_constants())
    question, update = _fitted(question)
    plan = _engine(question, update) if job.generates else None
    parts = _training_parts(question)
    generated, steady = _generation_seconds(question, plan)
    step, overlapped = _step(question, parts, generated, steady)
    seconds = sum(step.values())
    phases = _phases(question, plan, update)
    peak = max(phases, key=lambda phase: phase.bytes)
    spread = question.constants
    step_seconds = Interval(seconds * spread.low, seconds, seconds * spread.high)
    steps = None if job.samples is None else max(1, ceil(job.samples * job.epochs / question.prompts))
    wide = update.peak_bytes or Interval.exact(peak.bytes)
    return PostTraining(
        model=update.model,
        device=placement.device.name,
        gpus=placement.gpus,
        nodes=placement.nodes,
        algorithm=job.algorithm,
        strategy=question.training.strategy.name,
        precision=update.precision,
        optimizer=update.optimizer,
        lora=update.lora,
        engine=None if plan is None else plan.engine.name,
        tensor_parallel=None if plan is None else plan.cost.gpus,
        generation_gpus=job.generation_gpus,
        staleness=job.staleness,
        prompts_per_step=question.prompts,
        responses_per_step=question.responses.count,
        prompt_tokens=job.prompt or 0,
        response_tokens_mean=question.responses.mean_tokens - (job.prompt or 0),
        response_tokens_longest=question.responses.longest_tokens - (job.prompt or 0),
        micro_batch=question.responses.micro_batch(question.job, question.training.replicas),
        reference=question.reference,
        critic=question.critic,
        reward=job.reward_model or "rule",
        in_flight=None if plan is None else plan.slots * _generating_gpus(question) // plan.cost.gpus,
        step_seconds=step_seconds,
        parts=tuple(StepPart(name, part, part / seconds) for name, part in step.items() if part > 0),
        overlapped_seconds=overlapped,
        memory=tuple(phases),
        peak_bytes=Interval(peak.bytes * wide.low / wide.mid, peak.bytes, peak.bytes * wide.high / wide.mid),
        memory_bytes=placement.device.memory_bytes,
        steps=steps,
        total_seconds=None if steps is None else step_seconds.scaled(steps),
        parameters=update.parameters or 0,
        dollars_per_hour=placement.dollars_per_hour,
        price_source=placement.price_source,
        assumed=_assumed(question, plan),
        warnings=tuple(_warnings(question, plan, phases)),
    )


def _fitted(question: _Question) -> tuple[_Question, Forecast]:
    """The question with its memory; where nobody says the micro-batch, halved until the update fits."""
    update = update_memory(question.job, question.training, question.responses, question.session)
    if question.job.batch is not None:
        return question, update
    batch = question.responses.micro_batch(question.job, question.training.replicas)
    limit = usable_bytes(question.placement.device) - _reference_bytes(question)
    while batch > 1 and update.peak_bytes is not None and update.peak_bytes.mid > limit:
        batch //= 2
        halved = replace(question.job, batch=batch)
        update = update_memory(halved, question.training, question.responses, question.session)
    return replace(question, job=replace(question.job, batch=batch), assumed_batch=batch), update


def post_training_step(
    job: Job, placement: Placement, session: Session, constants: RlConstants
) -> tuple[Mapping[str, float], float]:
    """Middle seconds of every part, and what ran beside them, without asking for memory: colocated engines take
    `USUAL_FRACTION` of a GPU.
    """
    if job.generation_gpus is None and job.engine_memory_fraction is None:
        job = replace(job, engine_memory_fraction=USUAL_FRACTION)
    question = _question(job, placement, session, constants)
    plan = _engine(question, None) if job.generates else None
    generated, steady = _generation_seconds(question, plan)
    return _step(question, _training_parts(question), generated, steady)


def _question(job: Job, placement: Placement, session: Session, constants: RlConstants) -> _Question:
    """What one step works on; raises where the job does not say it."""
    if job.prompts_per_step is None or job.prompt is None or job.response is None:
        missing = next(name for name in ("prompts_per_step", "prompt", "response") if getattr(job, name) is None)
        raise BadInput(f"{job.algorithm} needs {missing}: tokens of prompts and responses, and prompts of a step")
    lengths = response_lengths(job.response)
    decoder_of(job, session)  # refuses other networks, and responses longer than the context
    count = job.prompts_per_step * job.responses_per_prompt
    responses = Responses(count, job.prompt + lengths.mean, job.prompt + lengths.longest)
    training = training_placement(placement, job.generation_gpus)
    return _Question(job, placement, training, session, responses, job.prompts_per_step, constants)


def _generating_gpus(question: _Question) -> int:
    return question.job.generation_gpus or question.placement.gpus


def _engine(question: _Question, update: Forecast | None) -> EnginePlan:
    """The engine, with what training leaves of a GPU where both share it."""
    job, placement = question.job, question.placement
    gpus = _generating_gpus(question)
    if update is not None and job.generation_gpus is None and job.engine_memory_fraction is None:
        usable = usable_bytes(placement.device)
        free = max(LEAST_FRACTION, 1 - _resident_bytes(question, update) / usable)
        job = replace(job, engine_memory_fraction=min(0.9, free))
    per_engine = ceil(question.responses.count / gpus)
    concurrency = job.concurrency or per_engine * gpus
    job = replace(job, concurrency=min(concurrency, question.responses.count), requests=question.responses.count)
    return engine_plan(job, placement if gpus == placement.gpus else part_of(placement, gpus), question.session, gpus)


def _resident_bytes(question: _Question, update: Forecast) -> float:
    """What training keeps on a GPU while it does nothing: weights and optimizer state, and a reference of its own."""
    kept = update.peak_breakdown
    state = sum(kept.get(name, 0) for name in _STATE) if question.job.offload == "none" else 0
    return state + _reference_bytes(question)


_STATE = ("parameters", "optimizer_state", "master_weights")


def _reference_bytes(question: _Question) -> float:
    """A frozen reference on each GPU: 16 bits per value, sharded as the policy is; none with LoRA or in host memory."""
    job = question.job
    if question.reference == NONE or job.reference_offload or (question.reference == SAME and job.lora):
        return 0.0
    frozen = frozen_job(job, question.reference)
    assert frozen is not None
    parameters = question.session.model(frozen).graph(1).parameter_count
    strategy = question.training.strategy
    shards = 1 if strategy.sharing_less is None else question.training.gpus
    return 2.0 * parameters / shards


def _training_parts(question: _Question) -> dict[str, float]:
    """Middle seconds of every part but generation."""
    job, place, responses, session = question.job, question.training, question.responses, question.session
    forward, update = question.constants.factor(FORWARD), question.constants.factor(UPDATE)
    parts: dict[str, float] = {}
    if job.generates:
        each = USUAL_REWARD_SECONDS if job.reward_seconds is None else job.reward_seconds
        parts["reward"] = each * responses.count / place.gpus
        if job.reward_model is not None:
            scorer = frozen_job(job, job.reward_model)
            assert scorer is not None
            parts["reward"] += forward * forward_seconds(scorer, place, responses, session).mid
        if job.old_logprobs:
            parts["old_logprobs"] = forward * forward_seconds(job, place, responses, session).mid
    reference = frozen_job(job, question.reference)
    if reference is not None:
        parts["reference"] = forward * forward_seconds(reference, place, responses, session).mid
        if job.reference_offload:
            parts["reference"] += _reference_copy_seconds(question)
    critic = frozen_job(job, question.critic)
    if critic is not None:
        parts["values"] = forward * forward_seconds(critic, place, responses, session).mid
        parts["update_critic"] = update * update_seconds(critic, place, responses, session).mid
    parts["update"] = update * update_seconds(job, place, responses, session).mid
    if job.generates:
        parts["weight_sync"] = _sync_seconds(question)
    return parts


def _reference_copy_seconds(question: _Question) -> float:
    """Weights of the reference from host memory over the host link."""
    from epochcast.hardware.catalogue import find_link

    plain = replace(question, job=replace(question.job, reference_offload=False, lora=0))
    return find_link(question.placement.device.host_link).seconds(_reference_bytes(plain))


def _sync_seconds(question: _Question) -> float:
    """All weights in 16 bits to the engine, each GPU its share, at the rate that trainers reach; LoRA's merged, too."""
    if question.job.sync_seconds is not None:
        return question.job.sync_seconds
    parameters = question.session.model(question.job).graph(1).parameter_count
    kind = "colocated" if question.job.generation_gpus is None else "split"
    return 2.0 * parameters / question.placement.gpus / question.constants.sync_bytes_per_second[kind]


def _generation_seconds(question: _Question, plan: EnginePlan | None) -> tuple[float, float]:
    """(until the slowest engine ends, at the steady rate) of all responses of a step."""
    if plan is None:
        return 0.0, 0.0
    engines = max(1, _generating_gpus(question) // plan.cost.gpus)
    each = max(1, ceil(question.responses.count / engines))
    shared = 1.0 / question.job.responses_per_prompt if plan.engine.is_batching else 1.0
    seeds = range(min(engines, SEEDS))
    runs = [plan.run(each, prompts_computed=shared, seed=seed) for seed in seeds]
    factor = question.constants.factor(GENERATION if plan.engine.is_batching else GENERATION_EAGER)
    longest = max(run.seconds for run in runs)
    steady = sum(run.tokens / run.steady_tokens_per_second for run in runs) / len(runs)
    return factor * longest, factor * min(longest, steady)


def _step(
    question: _Question, parts: Mapping[str, float], generated: float, steady: float
) -> tuple[dict[str, float], float]:
    """The parts that sum to the step, and the seconds that ran beside them."""
    rest = sum(parts.values())
    if question.job.generation_gpus is None or not question.job.staleness:
        return ({"generation": generated, **parts} if generated else dict(parts)), 0.0
    waited = max(0.0, steady - rest)
    return {"generation": waited, **parts}, steady - waited


def _phases(question: _Question, plan: EnginePlan | None, update: Forecast) -> list[PhaseMemory]:
    """The peak of one GPU in each phase."""
    limit = usable_bytes(question.placement.device)
    is_colocated = question.job.generation_gpus is None
    resident = _resident_bytes(question, update)
    phases: dict[str, float] = {}
    if plan is not None:
        phases["generation"] = plan.memory.needed_bytes + (resident if is_colocated else 0.0)
    reference = _reference_bytes(question)
    if question.job.generates or question.reference != NONE:
        forward = forward_peak_bytes(question.job, question.training, question.responses, question.session)
        weights = sum(update.peak_breakdown.get(name, 0) for name in ("parameters",))
        phases["log-probabilities"] = forward + max(0.0, resident - weights)
    peak = 0.0 if update.peak_bytes is None else update.peak_bytes.mid
    phases["update"] = peak + reference
    if question.critic != NONE:
        critic = frozen_job(question.job, question.critic)
        assert critic is not None
        own = update_memory(critic, question.training, question.responses, question.session)
        held = sum(own.peak_breakdown.get(name, 0) for name in _STATE)
        phases = {name: size + held for name, size in phases.items()}
        phases["update_critic"] = (0.0 if own.peak_bytes is None else own.peak_bytes.mid) + resident
    fits = plan is None or plan.room > 0
    return [PhaseMemory(name, size, size <= limit and (fits or name != "generation")) for name, size in phases.items()]


def _assumed(question: _Question, plan: EnginePlan | None) -> dict[str, str | int | float]:
    """What nobody said, with the values taken instead."""
    job = question.job
    assumed: dict[str, str | int | float] = {}
    if question.assumed_batch is not None:
        assumed["batch"] = question.assumed_batch
    if job.generates and job.generations is None:
        assumed["generations"] = job.responses_per_prompt
    if job.reference_model is None:
        assumed["reference_model"] = question.reference
    if job.algorithm == PPO and job.critic is None:
        assumed["critic"] = question.critic
    if job.generates and job.reward_seconds is None and job.reward_model is None:
        assumed["reward_seconds"] = USUAL_REWARD_SECONDS
    if plan is not None and job.engine_tp is None:
        assumed["engine_tp"] = plan.cost.gpus
    if plan is not None and job.engine_memory_fraction is None:
        assumed["engine_memory_fraction"] = round(plan.memory_fraction, 2)
    return assumed


def _warnings(question: _Question, plan: EnginePlan | None, phases: list[PhaseMemory]) -> list[str]:
    notes: list[str] = []
    job = question.job
    if plan is not None and not plan.room:
        notes.append(Note("Training leaves no room for the cache: offload its state, or give generation_gpus."))
    short = [phase.phase for phase in phases if not phase.fits and phase.phase != "generation"]
    if short and _reference_bytes(question) > 0.25 * usable_bytes(question.placement.device):
        each = _reference_bytes(question) / 2**30
        notes.append(Note(f"The reference takes {each:.0f} GiB of each GPU: use reference_offload, LoRA, or shard it."))
    if job.generation_gpus is not None and not job.staleness and job.generates:
        notes.append(Note("Split without staleness leaves one side idle while the other works: consider staleness 1."))
    return notes
