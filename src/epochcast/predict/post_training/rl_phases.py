"""The parts of a post-training step, each forecast by what it runs.

With N responses of a mean length L (prompt included) on d replicas of a policy in micro-batches of b sequences:

    log-probabilities   N/(d·b) forward passes of b·L tokens        (old ones, the reference's, values, a reward model)
    update              epochs · (N/(d·b) forward and backward passes + an optimizer step per mini-batch)

Responses are packed to their own lengths, as trainers that remove padding do; so time follows the mean length. Memory
is that of the larger of a usual micro-batch and a single response of the longest length.
"""

from dataclasses import dataclass, replace
from math import ceil

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.loader_step import CountedLoader
from epochcast.predict.forecast.placement import Placement, placed
from epochcast.predict.forecast.post_training_options import NONE, SAME, SFT
from epochcast.predict.forecast.session import Session

PASS_TOKENS = 8192
"""Tokens of one pass where nobody says the micro-batch: sequences are added until a pass has so many."""


@dataclass(frozen=True, slots=True)
class Responses:
    """What one step trains on: sequences over all GPUs, their mean and longest length with the prompt."""

    count: int
    mean_tokens: float
    longest_tokens: int

    def micro_batch(self, job: Job, replicas: int) -> int:
        """Sequences of one pass of a replica."""
        each = max(1, ceil(self.count / replicas))
        return min(each, job.batch or max(1, round(PASS_TOKENS / self.mean_tokens)))


def plain_step(job: Job, tokens: int, batch: int, *, mode: str, accumulate: int = 1) -> Job:
    """The training step inside a post-training step; nothing of data or generation is left in it."""
    return replace(
        job,
        algorithm=SFT,
        mode=mode,
        batch=batch,
        global_batch=None,
        accumulate=accumulate,
        input_shape=(tokens,),
        lengths=None,
        packing=False,
        dataset=None,
        samples=None,
        tokens=None,
        epochs=1,
        validation_samples=None,
        steps_per_epoch=None,
        critic=None,
        generation_gpus=None,
        staleness=0,
    )


def other_model(job: Job, model: str) -> Job:
    """The job with another network, trained in full."""
    return replace(job, model=model, lora=0, lora_targets=(), freeze=(), reference=None, fingerprint=None)


def forward_seconds(job: Job, placement: Placement, responses: Responses, session: Session) -> Interval:
    """One forward pass over all responses."""
    batch = responses.micro_batch(job, placement.replicas)
    passes = ceil(responses.count / placement.replicas / batch)
    step = plain_step(job, round(responses.mean_tokens), batch, mode="forward")
    answer = forecast_job(step, placement, session, step_only=True, loader=CountedLoader.NONE)
    return answer.step_seconds.scaled(passes)


def update_seconds(job: Job, placement: Placement, responses: Responses, session: Session) -> Interval:
    """All passes of the update over the responses of a step."""
    batch = responses.micro_batch(job, placement.replicas)
    per_update = ceil(responses.count / placement.replicas / job.updates_per_batch)
    batch = min(batch, per_update)
    passes = ceil(per_update / batch)
    step = plain_step(job, round(responses.mean_tokens), batch, mode="training", accumulate=passes)
    answer = forecast_job(step, placement, session, step_only=True, loader=CountedLoader.NONE)
    return answer.step_seconds.scaled(job.updates_per_batch * job.epochs_per_batch)


def update_memory(job: Job, placement: Placement, responses: Responses, session: Session) -> Forecast:
    """The optimizer step that needs most: usual micro-batches, or the longest response alone."""
    batch = responses.micro_batch(job, placement.replicas)
    longest = responses.longest_tokens
    alone = max(1, int(batch * responses.mean_tokens / longest))
    sizes = {(round(responses.mean_tokens), batch), (longest, alone)}
    answers = [
        forecast_job(plain_step(job, tokens, size, mode="training"), placement, session, loader=CountedLoader.NONE)
        for tokens, size in sizes
    ]
    return max(answers, key=lambda answer: 0.0 if answer.peak_bytes is None else answer.peak_bytes.mid)


def forward_memory(job: Job, placement: Placement, responses: Responses, session: Session) -> float:
    """Peak bytes of a forward pass over a micro-batch."""
    batch = responses.micro_batch(job, placement.replicas)
    step = plain_step(job, round(responses.mean_tokens), batch, mode="forward")
    answer = forecast_job(step, placement, session, loader=CountedLoader.NONE)
    return 0.0 if answer.peak_bytes is None else answer.peak_bytes.mid


def frozen_job(job: Job, model: str) -> Job | None:
    """The frozen network of a name: None where there is none; the policy's own where it is the same."""
    if model == NONE:
        return None
    return job if model == SAME else other_model(job, model)


def training_placement(placement: Placement, generation_gpus: int | None) -> Placement:
    """What trains: all GPUs, or those that do not generate."""
    if generation_gpus is None:
        return placement
    gpus = placement.gpus - generation_gpus
    if gpus < 1:
        raise BadInput(f"generation_gpus {generation_gpus} leaves none of {placement.gpus} GPUs for training")
    return part_of(placement, gpus)


def part_of(placement: Placement, gpus: int) -> Placement:
    """So many GPUs of a place, with its device, wires and way to share work; without its price."""
    nodes = max(1, ceil(gpus / placement.ranks_per_node))
    if gpus % nodes:
        raise BadInput(f"{gpus} GPUs do not share out evenly over {nodes} nodes: choose generation_gpus by whole nodes")
    strategy = placement.strategy if gpus == placement.gpus else placement.strategy.name
    chosen = "single" if gpus == 1 else strategy
    rest = placed(placement.device, gpus, nodes, chosen, link=placement.link, topology=placement.topology)
    return replace(rest, host=placement.host)
