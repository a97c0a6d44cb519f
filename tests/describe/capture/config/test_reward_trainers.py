"""Files and command lines of verl, EasyR1, OpenRLHF and NeMo-RL, written after their documentation."""

from pathlib import Path

import pytest

from epochcast.describe.capture.config.config_file import read_settings
from epochcast.describe.capture.config.setting import ConfigSettings
from epochcast.predict.forecast.job_settings import filled

pytest.importorskip("yaml", reason="the extra yaml is not installed")

# examples/grpo_trainer/run_qwen2-7b.sh of verl
VERL = r"""
set -x
python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    data.train_files=$HOME/data/gsm8k/train.parquet \
    data.train_batch_size=1024 \
    data.max_prompt_length=512 \
    data.max_response_length=1024 \
    actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \
    actor_rollout_ref.actor.optim.lr=1e-6 \
    actor_rollout_ref.model.use_remove_padding=True \
    actor_rollout_ref.actor.ppo_mini_batch_size=256 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=40 \
    actor_rollout_ref.actor.use_kl_loss=True \
    actor_rollout_ref.actor.kl_loss_coef=0.001 \
    actor_rollout_ref.model.enable_gradient_checkpointing=True \
    actor_rollout_ref.actor.fsdp_config.param_offload=False \
    actor_rollout_ref.rollout.tensor_model_parallel_size=2 \
    actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
    actor_rollout_ref.rollout.n=5 \
    actor_rollout_ref.ref.fsdp_config.param_offload=True \
    trainer.n_gpus_per_node=8 \
    trainer.nnodes=2 \
    trainer.total_epochs=15 $@
"""
# examples/config.yaml of EasyR1
EASY_R1 = """
data:
  train_files: hiyouga/math12k@train
  max_prompt_length: 2048
  max_response_length: 2048
  rollout_batch_size: 512
algorithm:
  adv_estimator: grpo
  disable_kl: false
worker:
  actor:
    global_batch_size: 128
    micro_batch_size_per_device_for_update: 4
    model:
      model_path: Qwen/Qwen2.5-7B-Instruct
      enable_gradient_checkpointing: true
  rollout:
    n: 5
    gpu_memory_utilization: 0.6
    enforce_eager: false
    tensor_parallel_size: 2
  ref:
    offload:
      offload_params: false
trainer:
  total_epochs: 15
  nnodes: 1
  n_gpus_per_node: 8
"""
# examples/scripts/train_ppo_llama_ray.sh of OpenRLHF
OPENRLHF = r"""
python3 -m openrlhf.cli.train_ppo_ray \
   --ref_num_nodes 1 \
   --ref_num_gpus_per_node 2 \
   --actor_num_nodes 1 \
   --actor_num_gpus_per_node 4 \
   --vllm_num_engines 2 \
   --vllm_tensor_parallel_size 2 \
   --pretrain meta-llama/Llama-3.1-8B-Instruct \
   --reward_pretrain meta-llama/Llama-3.1-8B-Instruct \
   --micro_train_batch_size 8 \
   --train_batch_size 128 \
   --rollout_batch_size 1024 \
   --n_samples_per_prompt 1 \
   --max_epochs 1 \
   --prompt_max_len 1024 \
   --generate_max_len 1024 \
   --zero_stage 3 \
   --bf16 \
   --gradient_checkpointing \
   --init_kl_coef 0.01
"""
# examples/configs/grpo_math_1B.yaml of NeMo-RL
NEMO_RL = """
grpo:
  num_prompts_per_step: 32
  num_generations_per_prompt: 16
  max_num_epochs: 1
loss_fn:
  reference_policy_kl_penalty: 0.01
policy:
  model_name: Qwen/Qwen2.5-1.5B
  train_global_batch_size: 512
  train_micro_batch_size: 4
  max_total_sequence_length: 512
  precision: bfloat16
  generation:
    backend: vllm
    max_new_tokens: 512
    vllm_cfg:
      tensor_parallel_size: 1
      gpu_memory_utilization: 0.6
      enforce_eager: false
data:
  max_input_seq_length: 512
cluster:
  gpus_per_node: 8
  num_nodes: 1
"""


def read(folder: Path, name: str, text: str) -> ConfigSettings:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return read_settings(file)[0]


def options(settings: ConfigSettings) -> dict[str, object]:
    return {setting.option: setting.value for setting in settings.settings}


def test_verl(tmp_path: Path) -> None:
    settings = read(tmp_path, "run.sh", VERL)
    assert settings.kind == "verl"
    assert options(settings) == {
        "model": "Qwen/Qwen2.5-7B-Instruct",
        "algorithm": "grpo",
        "checkpointing": True,
        "prompts_per_step": 1024,
        "prompt": 512,
        "response": "1024",
        "batch": 40,
        "updates_per_batch": 4,
        "generations": 5,
        "engine": "vllm",
        "engine_tp": 2,
        "engine_memory_fraction": 0.6,
        "reference_offload": True,
        "reference_model": "same",
        "gpus": 16,
        "nodes": 2,
        "epochs": 15,
    }
    assert any("data.max_response_length is the longest response: give response" in note for note in settings.notes)


def test_easy_r1(tmp_path: Path) -> None:
    settings = read(tmp_path, "config.yaml", EASY_R1)
    assert settings.kind == "EasyR1"
    said = options(settings)
    assert said["updates_per_batch"] == 4
    assert (said["prompts_per_step"], said["generations"], said["engine_tp"]) == (512, 5, 2)
    assert said["reference_model"] == "same"
    assert "engine_eager" not in said


def test_openrlhf(tmp_path: Path) -> None:
    settings = read(tmp_path, "train.sh", OPENRLHF)
    assert settings.kind == "OpenRLHF"
    said = options(settings)
    assert (said["algorithm"], said["strategy"], said["precision"]) == ("ppo", "zero3", "amp_bf16")
    assert (said["gpus"], said["generation_gpus"], said["engine_tp"]) == (8, 4, 2)
    assert said["updates_per_batch"] == 8
    assert said["reward_model"] == "meta-llama/Llama-3.1-8B-Instruct"


def test_nemo_rl(tmp_path: Path) -> None:
    settings = read(tmp_path, "grpo.yaml", NEMO_RL)
    assert settings.kind == "NeMo-RL"
    said = options(settings)
    assert (said["algorithm"], said["prompts_per_step"], said["generations"]) == ("grpo", 32, 16)
    assert "updates_per_batch" not in said
    assert (said["gpus"], said["strategy"]) == (8, "fsdp")


def test_what_the_user_says_counts(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(VERL, encoding="utf-8")
    read_options = filled(None, {"response": "lognormal:mean=200,max=1024"}, [tmp_path / "run.sh"])
    assert read_options.options["response"] == "lognormal:mean=200,max=1024"
    assert read_options.model == "Qwen/Qwen2.5-7B-Instruct"
