"""Training from preferences and rewards as trainers on top of transformers' Trainer configure it: DPO, GRPO, RLOO, PPO.

They count samples of one GPU: pairs of DPO, prompts of PPO, responses of GRPO. How many prompts a step has follows from
the GPUs (`prompts_of_gpu`, `responses_of_gpu`). Lengths are the longest that the trainer lets through.

Defaults are those of TRL (trl/trainer/dpo_config.py, grpo_config.py, rloo_config.py, ppo_config.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from epochcast.describe.capture.config.key_table import is_set, number, positive, stated
from epochcast.describe.capture.config.setting import PROMPTS_OF_GPU, RESPONSES_OF_GPU, STEPS, ConfigSetting, Reader

DPO, GRPO, RLOO, PPO = "dpo", "grpo", "rloo", "ppo"
ALGORITHM_OF_CONFIG: Mapping[str, str] = {"DPOConfig": DPO, "GRPOConfig": GRPO, "RLOOConfig": RLOO, "PPOConfig": PPO}
"""Configs of TRL whose steps are forecast part by part."""
PREFERENCE_KEYS = (
    *("max_prompt_length", "max_completion_length", "num_generations", "steps_per_generation", "num_iterations"),
    *("generation_batch_size", "use_vllm", "vllm_mode", "vllm_gpu_memory_utilization", "vllm_tensor_parallel_size"),
    *("precompute_ref_log_probs", "reference_free", "beta", "num_ppo_epochs", "num_mini_batches", "response_length"),
    *("kl_coef", "reward_model_path", "sft_model_path"),
)
"""What their configs say of it."""


@dataclass(frozen=True)
class _Defaults:
    prompt: int = 512
    response: int = 512
    generations: int = 1
    divergence: float = 0.1
    """The weight of the divergence from the reference; a reference of weight 0 is not loaded."""


_DEFAULTS: Mapping[str, _Defaults] = {
    DPO: _Defaults(),
    GRPO: _Defaults(response=256, generations=8, divergence=0.0),
    RLOO: _Defaults(response=256, generations=2, divergence=0.05),
    PPO: _Defaults(response=53, divergence=0.05),
}
_DPO_LENGTH = 1024
_PPO_EPOCHS = 4
_TRAINERS_BATCH = 8


def set_preferences(reader: Reader, algorithm: str) -> None:
    """Turn what was read as fine-tuning into a step of an algorithm; what it says otherwise is taken back."""
    said = {name: stated(reader, name) for name in ("batch", "accumulate", "input_shape")}
    reader.entries[:] = [each for each in reader.entries if each.option not in (*said, "packing")]
    reader.read_keys |= set(PREFERENCE_KEYS)
    reader.set("algorithm", GRPO if algorithm == RLOO else algorithm, algorithm)
    batch, accumulate = said["batch"] or _TRAINERS_BATCH, said["accumulate"] or 1
    longest = (said["input_shape"] or (_DPO_LENGTH,))[0]
    if algorithm == DPO:
        _set_pairs(reader, batch, accumulate, longest)
    else:
        _set_responses(reader, algorithm, batch, accumulate)
    reader.notes.append(
        "prompts and responses are taken to be as long as the trainer lets them be: give `prompt` and `response`"
    )


def _set_pairs(reader: Reader, batch: int, accumulate: int, longest: int) -> None:
    """A sample is a pair: two texts in each pass. Only the length of a whole text counts."""
    prompt = min(positive(reader, "max_prompt_length") or longest // 2, longest - 1)
    reader.set("prompt", prompt, "max_prompt_length")
    reader.set("response", str(longest - prompt), "max_length")
    reader.set("batch", 2 * batch, "per_device_train_batch_size")
    reader.set(PROMPTS_OF_GPU, batch * accumulate, "gradient_accumulation_steps")
    is_without = is_set(reader, "reference_free") or is_set(reader, "precompute_ref_log_probs")
    reader.set("reference_model", "none" if is_without else "same", "reference_free")
    if is_set(reader, "precompute_ref_log_probs"):
        reader.leave("precompute_ref_log_probs", "the one pass of the reference in front is not timed")


def _set_responses(reader: Reader, algorithm: str, batch: int, accumulate: int) -> None:
    usual = _DEFAULTS[algorithm]
    reader.set("prompt", positive(reader, "max_prompt_length") or usual.prompt, "max_prompt_length")
    longest = positive(reader, "max_completion_length") or positive(reader, "response_length") or usual.response
    reader.set("response", str(longest), "max_completion_length")
    reader.set("batch", batch, "per_device_train_batch_size")
    weight = number(reader, "kl_coef" if algorithm == PPO else "beta")
    has_reference = (usual.divergence if weight is None else weight) > 0
    reader.set("reference_model", "same" if has_reference else "none", "beta")
    if algorithm == PPO:
        reader.set("epochs_per_batch", positive(reader, "num_ppo_epochs") or _PPO_EPOCHS, "num_ppo_epochs")
        reader.set("updates_per_batch", positive(reader, "num_mini_batches") or 1, "num_mini_batches")
        reader.set(PROMPTS_OF_GPU, batch * accumulate, "gradient_accumulation_steps")
        _set_episodes(reader)
    else:
        _set_groups(reader, usual, batch, accumulate)
    _set_engine(reader)


def _set_episodes(reader: Reader) -> None:
    """PPO counts prompts in all, and scores responses by a model."""
    reader.read_keys.add("total_episodes")
    episodes = positive(reader, "total_episodes")
    if episodes:
        reader.entries[:] = [each for each in reader.entries if each.option not in ("epochs", STEPS)]
        reader.set("samples", episodes, "total_episodes")
        reader.set("epochs", 1, "total_episodes")
    scorer = reader.take("reward_model_path")
    if isinstance(scorer, str) and scorer.count("/") == 1 and scorer[0] not in "./":
        reader.set("reward_model", scorer, "reward_model_path")


def _set_groups(reader: Reader, usual: _Defaults, batch: int, accumulate: int) -> None:
    """A round of generation feeds `steps_per_generation` passes, `gradient_accumulation_steps` of them an update."""
    passes = positive(reader, "steps_per_generation") or accumulate
    updates = max(1, passes // accumulate)
    iterations = positive(reader, "num_iterations") or 1
    reader.set("generations", positive(reader, "num_generations") or usual.generations, "num_generations")
    whole = positive(reader, "generation_batch_size")
    if whole:
        reader.leave("generation_batch_size", "give `prompts_per_step`")
    reader.set(RESPONSES_OF_GPU, batch * passes, "steps_per_generation")
    reader.set("updates_per_batch", updates, "steps_per_generation")
    reader.set("epochs_per_batch", iterations, "num_iterations")
    if updates * iterations == 1:
        reader.set("old_logprobs", False, "num_iterations")


def _set_engine(reader: Reader) -> None:
    """Transformers' generate unless vLLM is asked for, which shares the GPUs or has its own."""
    if not is_set(reader, "use_vllm"):
        reader.set("engine", "hf", "use_vllm")
        return
    reader.set("engine", "vllm", "use_vllm")
    if reader.text("vllm_mode") in ("", "server"):
        reader.notes.append(
            "vLLM has GPUs of its own (vllm_mode server): give `generation_gpus`, and count them in `gpus`"
        )
        return
    reader.set("engine_memory_fraction", number(reader, "vllm_gpu_memory_utilization") or 0.3, "vllm_mode")
    reader.set("engine_tp", positive(reader, "vllm_tensor_parallel_size") or 1, "vllm_tensor_parallel_size")


def kind_of(document: Mapping[str, object]) -> str:
    """The config of TRL that a file without a script has, by keys that only one of them has."""
    marks = {
        "GRPOConfig": ("num_generations", "max_completion_length", "reward_funcs"),
        "PPOConfig": ("num_ppo_epochs", "response_length"),
        "DPOConfig": ("max_prompt_length", "precompute_ref_log_probs", "reference_free"),
    }
    return next((kind for kind, keys in marks.items() if any(key in document for key in keys)), "")


def with_preferences(name: str, document: Mapping[str, object], entries: list[ConfigSetting], kind: str) -> Reader:
    """What a config of TRL says in a script, as a step of its algorithm."""
    reader = Reader(name, document, entries=list(entries))
    set_preferences(reader, ALGORITHM_OF_CONFIG[kind])
    return reader
