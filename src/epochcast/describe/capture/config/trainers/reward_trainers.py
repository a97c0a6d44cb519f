"""Trainers that learn from rewards: verl and EasyR1 (hydra: YAML or `key=value`), OpenRLHF (a command line), NeMo-RL.

They say the longest prompts and responses alone. Until the user says how long they are on average (`prompt`,
`response`), every prompt and response is taken as long as that, and a note says so.
"""

from collections.abc import Mapping

from epochcast.describe.capture.config.key_table import (
    MODEL,
    Row,
    Trainer,
    is_set,
    name,
    not_modelled,
    number,
    positive,
    says,
    stated,
    when,
    words,
)
from epochcast.describe.capture.config.setting import Reader

_ESTIMATORS: Mapping[str, str] = {
    "gae": "ppo",
    **dict.fromkeys(("grpo", "grpo_passk", "rloo", "reinforce_plus_plus", "remax", "gpg", "opo", "group_norm"), "grpo"),
    **dict.fromkeys(("reinforce", "reinforce_baseline", "dr_grpo"), "grpo"),
}
_ENGINES: Mapping[str, str] = {"vllm": "vllm", "sglang": "sglang", "hf": "hf"}


def _longest(option: str) -> Row:
    """The longest prompt or response, taken for all of them."""

    def read(reader: Reader, key: str) -> None:
        longest = positive(reader, key)
        if longest is not None:
            reader.set(option, str(longest) if option == "response" else longest, key)
            reader.notes.append(f"{key} is the longest {option}: give {option}, else all have {longest:,} tokens")

    return read


def _mini_batches(reader: Reader, whole: str, part: str) -> None:
    """Optimizer steps of a batch: how often a mini-batch goes into it."""
    batch, mini = positive(reader, whole), positive(reader, part)
    if batch and mini and batch > mini:
        reader.set("updates_per_batch", -(-batch // mini), part)


def _place(reader: Reader, each: str, nodes: str) -> None:
    """GPUs of a node by nodes."""
    per_node, count = positive(reader, each), positive(reader, nodes) or 1
    if per_node:
        reader.set("gpus", per_node * count, each)
        reader.set("nodes", count, nodes)


def _reference(reader: Reader, *keys: str) -> None:
    """A reference is needed where a divergence from it is counted."""
    key = next((each for each in keys if is_set(reader, each)), "")
    reader.set("reference_model", "same" if key else "none", key or keys[0])


def _offload(reader: Reader, parameters: str, optimizer: str) -> None:
    """Weights or state that wait in host memory while other phases run."""
    for key in (parameters, optimizer):
        if is_set(reader, key):
            reader.leave(key, "weights and state that wait in host memory between phases are not timed")


# ---- verl ----------------------------------------------------------------------------------------

_ACTOR, _ROLLOUT, _REF = "actor_rollout_ref.actor.", "actor_rollout_ref.rollout.", "actor_rollout_ref.ref."


def _finish_verl(reader: Reader) -> None:
    reader.set("algorithm", stated(reader, "algorithm") or "ppo", "algorithm.adv_estimator")
    _mini_batches(reader, "data.train_batch_size", f"{_ACTOR}ppo_mini_batch_size")
    _place(reader, "trainer.n_gpus_per_node", "trainer.nnodes")
    if "algorithm" in {setting.option for setting in reader.entries}:
        _reference(reader, f"{_ACTOR}use_kl_loss", "algorithm.use_kl_in_reward")
    _offload(reader, f"{_ACTOR}fsdp_config.param_offload", f"{_ACTOR}fsdp_config.optimizer_offload")
    if stated(reader, "algorithm") != "ppo":
        reader.entries[:] = [setting for setting in reader.entries if setting.option != "critic"]
    if not is_set(reader, "reward_model.enable"):
        reader.entries[:] = [setting for setting in reader.entries if setting.option != "reward_model"]


VERL = Trainer(
    "verl",
    marks=(frozenset({"actor_rollout_ref.model.path"}), frozenset({f"{_ROLLOUT}n", "data.train_batch_size"})),
    keys={
        "algorithm.adv_estimator": words("algorithm", _ESTIMATORS),
        "actor_rollout_ref.model.path": says(MODEL, name),
        "actor_rollout_ref.model.lora_rank": says("lora", positive),
        "actor_rollout_ref.model.enable_gradient_checkpointing": when("checkpointing", True),
        "data.train_batch_size": says("prompts_per_step", positive),
        "data.max_prompt_length": _longest("prompt"),
        "data.max_response_length": _longest("response"),
        f"{_ACTOR}strategy": words("strategy", {"fsdp": "fsdp", "fsdp2": "fsdp"}),
        f"{_ACTOR}ppo_micro_batch_size_per_gpu": says("batch", positive),
        f"{_ACTOR}ppo_epochs": says("epochs_per_batch", positive),
        f"{_ROLLOUT}n": says("generations", positive),
        f"{_ROLLOUT}name": words("engine", _ENGINES),
        f"{_ROLLOUT}tensor_model_parallel_size": says("engine_tp", positive),
        f"{_ROLLOUT}gpu_memory_utilization": says("engine_memory_fraction", number),
        f"{_ROLLOUT}enforce_eager": when("engine_eager", True),
        f"{_REF}fsdp_config.param_offload": when("reference_offload", True),
        "critic.model.path": says("critic", name),
        "reward_model.model.path": says("reward_model", name),
        "trainer.total_epochs": says("epochs", positive),
        f"{_ACTOR}ulysses_sequence_parallel_size": not_modelled("sequence parallelism of Ulysses"),
    },
    harmless=(
        *("data.*_files", "data.*_key", "data.filter_*", "data.truncation", "data.shuffle", "data.return_*"),
        *("algorithm.*", "trainer.*", "reward_model.reward_manager", "custom_reward_function.*", "ray_*"),
        *(f"{_ACTOR}*kl*", f"{_ACTOR}optim.*", f"{_ACTOR}entropy*", f"{_ACTOR}clip*", f"{_ACTOR}loss*"),
        *(
            f"{_ACTOR}use_dynamic_bsz",
            f"{_ACTOR}ppo_max_token_len_per_gpu",
            f"{_ACTOR}grad_clip",
            f"{_ACTOR}checkpoint*",
        ),
        *(f"{_ROLLOUT}temperature", f"{_ROLLOUT}top_*", f"{_ROLLOUT}log_prob_*", f"{_ROLLOUT}val_*", f"{_ROLLOUT}mode"),
        *(f"{_REF}log_prob_*", "actor_rollout_ref.model.use_remove_padding", "critic.optim.*", "critic.ppo_*"),
        *(
            "actor_rollout_ref.hybrid_engine",
            "critic.model.*",
            f"{_ROLLOUT}free_cache_engine",
            f"{_ROLLOUT}load_format",
        ),
    ),
    finish=_finish_verl,
    programs=("verl.trainer.main_ppo", "main_ppo.py"),
)

# ---- EasyR1 --------------------------------------------------------------------------------------


def _finish_easy_r1(reader: Reader) -> None:
    if stated(reader, "algorithm") is None:
        reader.set("algorithm", "grpo", "default", is_default=True)
    _mini_batches(reader, "data.rollout_batch_size", "worker.actor.global_batch_size")
    _place(reader, "trainer.n_gpus_per_node", "trainer.nnodes")
    is_off = is_set(reader, "algorithm.disable_kl")
    reader.set("reference_model", "none" if is_off else "same", "algorithm.disable_kl")
    reader.set("strategy", "fsdp", "default", is_default=True)
    _offload(reader, "worker.actor.offload.offload_params", "worker.actor.offload.offload_optimizer")


EASY_R1 = Trainer(
    "EasyR1",
    marks=(frozenset({"worker.actor.model.model_path"}), frozenset({"worker.rollout.n", "data.rollout_batch_size"})),
    keys={
        "algorithm.adv_estimator": words("algorithm", _ESTIMATORS),
        "worker.actor.model.model_path": says(MODEL, name),
        "worker.actor.model.enable_gradient_checkpointing": when("checkpointing", True),
        "data.rollout_batch_size": says("prompts_per_step", positive),
        "data.max_prompt_length": _longest("prompt"),
        "data.max_response_length": _longest("response"),
        "worker.actor.micro_batch_size_per_device_for_update": says("batch", positive),
        "worker.actor.ppo_epochs": says("epochs_per_batch", positive),
        "worker.rollout.n": says("generations", positive),
        "worker.rollout.tensor_parallel_size": says("engine_tp", positive),
        "worker.rollout.gpu_memory_utilization": says("engine_memory_fraction", number),
        "worker.rollout.enforce_eager": when("engine_eager", True),
        "worker.ref.offload.offload_params": when("reference_offload", True),
        "trainer.total_epochs": says("epochs", positive),
    },
    harmless=("data.*", "algorithm.*", "trainer.*", "worker.*"),
    finish=_finish_easy_r1,
    programs=("verl.trainer.main",),
)

# ---- OpenRLHF ------------------------------------------------------------------------------------

_OF_STAGE: Mapping[str, str] = {"0": "ddp", "1": "zero1", "2": "zero2", "3": "zero3"}


def _finish_openrlhf(reader: Reader) -> None:
    if stated(reader, "algorithm") is None:
        reader.set("algorithm", "ppo", "default", is_default=True)
    _mini_batches(reader, "rollout_batch_size", "train_batch_size")
    trained = (positive(reader, "actor_num_gpus_per_node") or 0) * (positive(reader, "actor_num_nodes") or 1)
    engines = positive(reader, "vllm_num_engines") or 0
    generating = engines * (positive(reader, "vllm_tensor_parallel_size") or 1)
    is_colocated = is_set(reader, "colocate_all_models")
    if trained:
        reader.set("gpus", trained if is_colocated else trained + generating, "actor_num_gpus_per_node")
        reader.set("nodes", positive(reader, "actor_num_nodes") or 1, "actor_num_nodes")
    if generating and not is_colocated:
        reader.set("generation_gpus", generating, "vllm_num_engines")
    if not engines:
        reader.set("engine", "hf", "vllm_num_engines")
    weight = number(reader, "init_kl_coef")
    reader.set("reference_model", "none" if weight == 0 else "same", "init_kl_coef")
    if stated(reader, "algorithm") != "ppo":
        reader.entries[:] = [setting for setting in reader.entries if setting.option != "critic"]


OPENRLHF = Trainer(
    "OpenRLHF",
    marks=(frozenset({"actor_num_gpus_per_node", "rollout_batch_size"}),),
    keys={
        "advantage_estimator": words("algorithm", _ESTIMATORS),
        "pretrain": says(MODEL, name),
        "reward_pretrain": says("reward_model", name),
        "critic_pretrain": says("critic", name),
        "rollout_batch_size": says("prompts_per_step", positive),
        "n_samples_per_prompt": says("generations", positive),
        "prompt_max_len": _longest("prompt"),
        "generate_max_len": _longest("response"),
        "micro_train_batch_size": says("batch", positive),
        "max_epochs": says("epochs_per_batch", positive),
        "num_episodes": says("epochs", positive),
        "max_samples": says("samples", positive),
        "zero_stage": words("strategy", _OF_STAGE),
        "vllm_tensor_parallel_size": says("engine_tp", positive),
        "vllm_gpu_memory_utilization": says("engine_memory_fraction", number),
        "enforce_eager": when("engine_eager", True),
        "gradient_checkpointing": when("checkpointing", True),
        "lora_rank": says("lora", positive),
        "bf16": when("precision", "amp_bf16"),
        "adam_offload": not_modelled("state that waits in host memory between phases is not timed"),
    },
    harmless=(
        *(
            "*_learning_rate",
            "*num_gpus_per_node",
            "*num_nodes",
            "*_path",
            "*_data*",
            "input_key",
            "label_key",
            "logging_steps",
        ),
        *(
            "save_*",
            "eval_*",
            "micro_rollout_batch_size",
            "normalize_reward",
            "packing_samples",
            "flash_attn",
            "apply_chat_*",
        ),
        *(
            "colocate_*",
            "vllm_sync_backend",
            "vllm_enable_sleep",
            "deepspeed_enable_sleep",
            "use_wandb",
            "init_kl_coef",
        ),
        *("gamma", "lambd", "eps_clip*", "temperature", "top_p", "seed", "prompt_data*", "train_batch_size"),
    ),
    finish=_finish_openrlhf,
    programs=("openrlhf.cli.train_ppo_ray", "openrlhf.cli.train_ppo", "train_ppo_ray.py"),
)

# ---- NeMo-RL -------------------------------------------------------------------------------------


def _finish_nemo_rl(reader: Reader) -> None:
    reader.set("algorithm", "grpo", "grpo.num_prompts_per_step")
    _place(reader, "cluster.gpus_per_node", "cluster.num_nodes")
    prompts, each = positive(reader, "grpo.num_prompts_per_step"), positive(reader, "grpo.num_generations_per_prompt")
    batch = positive(reader, "policy.train_global_batch_size")
    if prompts and each and batch and prompts * each > batch:
        reader.set("updates_per_batch", -(-prompts * each // batch), "policy.train_global_batch_size")
    weight = number(reader, "loss_fn.reference_policy_kl_penalty")
    reader.set("reference_model", "none" if weight == 0 else "same", "loss_fn.reference_policy_kl_penalty")
    longest, prompt = (
        positive(reader, "policy.max_total_sequence_length"),
        positive(reader, "data.max_input_seq_length"),
    )
    if longest and prompt and prompt < longest and stated(reader, "response") is None:
        reader.set("response", str(longest - prompt), "policy.max_total_sequence_length")
    resources = "policy.generation.colocated.resources.gpus_per_node"
    generating = positive(reader, resources)
    is_split = "policy.generation.colocated.enabled" in reader.document
    if is_split and generating and not is_set(reader, "policy.generation.colocated.enabled"):
        reader.set("generation_gpus", generating, resources)
    parallel = positive(reader, "policy.dtensor_cfg.tensor_parallel_size") or 1
    if parallel > 1:
        reader.leave("policy.dtensor_cfg.tensor_parallel_size", "give `strategy`, like dp4,tp2")
    reader.set("strategy", "fsdp", "default", is_default=True)


NEMO_RL = Trainer(
    "NeMo-RL",
    marks=(frozenset({"grpo.num_prompts_per_step", "policy.model_name"}),),
    keys={
        "policy.model_name": says(MODEL, name),
        "policy.precision": words("precision", {"bfloat16": "amp_bf16", "float16": "amp_fp16", "float32": "fp32"}),
        "policy.train_micro_batch_size": says("batch", positive),
        "policy.dtensor_cfg.activation_checkpointing": when("checkpointing", True),
        "grpo.num_prompts_per_step": says("prompts_per_step", positive),
        "grpo.num_generations_per_prompt": says("generations", positive),
        "grpo.max_num_epochs": says("epochs", positive),
        "data.max_input_seq_length": _longest("prompt"),
        "policy.generation.max_new_tokens": _longest("response"),
        "policy.generation.backend": words("engine", _ENGINES),
        "policy.generation.vllm_cfg.tensor_parallel_size": says("engine_tp", positive),
        "policy.generation.vllm_cfg.gpu_memory_utilization": says("engine_memory_fraction", number),
        "policy.generation.vllm_cfg.enforce_eager": when("engine_eager", True),
    },
    harmless=("grpo.*", "loss_fn.*", "checkpointing.*", "policy.*", "data.*", "env.*", "logger.*", "cluster.*"),
    finish=_finish_nemo_rl,
    programs=("run_grpo_math.py", "run_grpo.py"),
)
REWARD_TRAINERS = (VERL, EASY_R1, OPENRLHF, NEMO_RL)
