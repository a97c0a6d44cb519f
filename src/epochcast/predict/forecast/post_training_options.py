"""Options of a job that trains a language model from preferences or rewards: DPO, PPO, GRPO, DAPO."""

from dataclasses import dataclass
from functools import partial

from epochcast.base.options import option
from epochcast.errors import BadInput, UnknownName
from epochcast.predict.forecast.generation_options import GenerationOptions, OnlyForecast
from epochcast.units import parse_count, parse_seconds

SFT, DPO, PPO, GRPO, DAPO = "sft", "dpo", "ppo", "grpo", "dapo"
ALGORITHMS = (SFT, DPO, PPO, GRPO, DAPO)
NONE, SAME = "none", "same"
MOST_COUNT = 10**6

_post = partial(option, group="post-training")


@dataclass(frozen=True, kw_only=True)
class PostTrainingOptions(GenerationOptions):
    """What `Job` says of post-training; `batch` is then the micro-batch of one GPU, in sequences."""

    algorithm: str = _post(
        SFT, "sft (supervised), dpo (pairs of preferences), ppo (with a critic), grpo or dapo (groups of responses)."
    )
    prompts_per_step: int | None = _post(
        None, "Prompts of one step over all GPUs; pairs for dpo.", least=1, most=MOST_COUNT, parse=parse_count
    )
    generations: int | None = _post(
        None, "Responses per prompt [default: 8 for grpo and dapo, 1 for ppo].", least=1, most=10_000
    )
    reference_model: str | None = _post(
        None,
        "Frozen reference: same (the policy's size; with --lora the policy without its adapters), none, or a MODEL "
        "[default: none for dapo, else same].",
    )
    reference_offload: bool = _post(False, "Keep the reference in host memory and copy it in for each step.")
    critic: str | None = _post(None, "Critic of ppo: same (the policy's size) or a MODEL [default: same].")
    reward_model: str | None = _post(None, "A MODEL that scores responses [default: a rule].")
    reward_seconds: float | None = _post(
        None,
        "Seconds to score one response by a rule or a service, like 20ms.",
        unit="seconds",
        least=0,
        most=3600,
        parse=partial(parse_seconds, option="--reward-seconds", unit="s"),
    )
    epochs_per_batch: int = _post(1, "Passes of the update over one batch of responses.", least=1, most=1000)
    updates_per_batch: int = _post(1, "Optimizer steps per pass (mini-batches).", least=1, most=10_000)
    old_logprobs: bool = _post(True, "Compute log-probabilities of the responses again before the update.")
    generation_gpus: int | None = _post(
        None, "GPUs of their own for generation (split placement) [default: colocated with training].", least=1
    )
    staleness: int = _post(
        0, "With --generation-gpus, steps by which generation runs ahead (asynchronous).", least=0, most=1000
    )
    sync_seconds: float | None = _post(
        None,
        "Seconds to pass new weights to the engine, like 8s [default: by their size].",
        unit="seconds",
        least=0,
        most=86_400,
        parse=partial(parse_seconds, option="--sync-seconds", unit="s"),
    )

    @property
    def is_post_training(self) -> bool:
        """Whether a step has more parts than those of a training step."""
        return self.algorithm != SFT

    @property
    def generates(self) -> bool:
        """Whether a step begins with responses of the policy."""
        return self.algorithm in (PPO, GRPO, DAPO)

    @property
    def responses_per_prompt(self) -> int:
        """As given, else as usual for the algorithm; a pair of dpo has two."""
        if self.algorithm == DPO:
            return 2
        return self.generations or (1 if self.algorithm == PPO else 8)

    def check_is_step(self) -> None:
        """Raise for a job that is no training step."""
        super().check_is_step()
        if self.is_post_training:
            also = " and `epochcast advise`" if self.generates else " alone"
            raise OnlyForecast(f"--algorithm {self.algorithm}", also)

    def check_post_training(self) -> None:
        """Raise where options of post-training contradict each other."""
        if self.algorithm not in ALGORITHMS:
            raise UnknownName("algorithm", self.algorithm, ALGORITHMS)
        if self.staleness and self.generation_gpus is None:
            raise BadInput("staleness needs GPUs of their own for generation: give generation_gpus")
        if self.algorithm == DPO and self.generation_gpus is not None:
            raise BadInput("dpo generates nothing: leave generation_gpus out")
        if self.critic not in (None, NONE) and self.algorithm != PPO:
            raise BadInput(f"{self.algorithm} has no critic: leave critic out, or use --algorithm ppo")
