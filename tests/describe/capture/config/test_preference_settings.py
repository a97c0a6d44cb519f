"""DPO, GRPO, RLOO and PPO as TRL, LLaMA-Factory, ms-swift and axolotl configure them, after their documentation."""

from pathlib import Path
from typing import Any

import pytest

from epochcast.describe.capture.config.config_file import read_settings
from epochcast.predict.forecast.job_settings import filled

pytest.importorskip("yaml", reason="the extra yaml is not installed")

GRPO = """
from trl import GRPOConfig, GRPOTrainer
from peft import LoraConfig

args = GRPOConfig("out", per_device_train_batch_size=16, gradient_accumulation_steps=2, num_generations=8,
    max_prompt_length=512, max_completion_length=1024, use_vllm=True, vllm_mode="colocate",
    vllm_gpu_memory_utilization=0.4, beta=0.04, num_iterations=2, max_steps=100)
trainer = GRPOTrainer(model="Qwen/Qwen2.5-1.5B-Instruct", reward_funcs=reward, args=args,
    peft_config=LoraConfig(r=16, target_modules=["q_proj", "v_proj"]))
"""
DPO = """
from transformers import AutoModelForCausalLM
from trl import DPOConfig, DPOTrainer

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B-Instruct")
args = DPOConfig("out", per_device_train_batch_size=4, gradient_accumulation_steps=8, max_length=2048,
    max_prompt_length=512, bf16=True)
DPOTrainer(model=model, args=args, train_dataset=pairs).train()
"""
PPO = r"""
accelerate launch --num_processes 8 examples/scripts/ppo/ppo.py --model_name_or_path EleutherAI/pythia-1b-deduped \
    --reward_model_path EleutherAI/pythia-1b-deduped --per_device_train_batch_size 16 \
    --gradient_accumulation_steps 4 --num_ppo_epochs 1 --response_length 53 --total_episodes 10000
"""
OPEN_R1 = """
model_name_or_path: Qwen/Qwen2.5-Math-7B
bf16: true
use_vllm: true
gradient_accumulation_steps: 8
steps_per_generation: 16
max_completion_length: 1024
num_generations: 16
num_train_epochs: 1
per_device_train_batch_size: 4
"""
LLAMA_FACTORY = """
model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct
stage: dpo
finetuning_type: lora
pref_loss: {loss}
cutoff_len: 2048
max_samples: 1000
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
"""
SWIFT = r"""
NPROC_PER_NODE=8 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B --train_type full --dataset math#5000 \
  --use_vllm true --vllm_mode colocate --num_generations 8 --max_completion_length 2048 \
  --per_device_train_batch_size 8 --deepspeed zero3 --beta 0.04
"""
AXOLOTL = """
base_model: Qwen/Qwen2.5-1.5B
rl: grpo
trl: {beta: 0.001, use_vllm: true, num_generations: 4, max_completion_length: 256}
sequence_len: 2048
micro_batch_size: 2
gradient_accumulation_steps: 4
"""


def asked(folder: Path, name: str, text: str, **given: Any) -> dict[str, Any]:
    """The options of a job that a file says, besides those that are given."""
    (folder / name).write_text(text, encoding="utf-8")
    return dict(filled(None, given, [folder / name]).options)


def test_a_round_of_grpo_feeds_all_passes_of_an_update(tmp_path: Path) -> None:
    options = asked(tmp_path, "train.py", GRPO, gpus=4)
    assert options["prompts_per_step"] == 16 * 2 * 4 // 8
    assert (options["algorithm"], options["generations"], options["epochs_per_batch"]) == ("grpo", 8, 2)
    assert (options["prompt"], options["response"], options["batch"]) == (512, "1024", 16)
    assert (options["engine"], options["engine_memory_fraction"], options["reference_model"]) == ("vllm", 0.4, "same")
    assert options["samples"] == 100 // 2 * 16  # 100 updates, two a round
    assert options["lora"] == 16
    assert not {"accumulate", "input_shape"} & set(options)


def test_a_sample_of_dpo_is_two_sequences(tmp_path: Path) -> None:
    options = asked(tmp_path, "train.py", DPO, gpus=2)
    assert (options["batch"], options["prompts_per_step"]) == (8, 4 * 8 * 2)
    assert (options["prompt"], options["response"], options["reference_model"]) == (512, "1536", "same")


def test_ppo_counts_episodes_and_has_a_scorer(tmp_path: Path) -> None:
    options = asked(tmp_path, "ppo.sh", PPO)
    assert (options["algorithm"], options["prompts_per_step"], options["samples"]) == ("ppo", 16 * 4 * 8, 10_000)
    assert (options["engine"], options["reward_model"]) == ("hf", "EleutherAI/pythia-1b-deduped")


def test_a_file_of_grpo_is_known_by_its_keys(tmp_path: Path) -> None:
    options = asked(tmp_path, "grpo.yaml", OPEN_R1, gpus=8)
    assert (options["algorithm"], options["updates_per_batch"]) == ("grpo", 2)
    assert options["prompts_per_step"] == 4 * 16 * 8 // 16
    assert options["reference_model"] == "none"  # TRL's beta is 0
    assert "old_logprobs" not in options  # two updates a round need them


@pytest.mark.parametrize(("loss", "reference"), [("sigmoid", "same"), ("orpo", "none")])
def test_llama_factory(tmp_path: Path, loss: str, reference: str) -> None:
    options = asked(tmp_path, "dpo.yaml", LLAMA_FACTORY.format(loss=loss))
    assert (options["algorithm"], options["prompts_per_step"], options["batch"]) == ("dpo", 8, 2)
    assert options["prompt"] + int(options["response"]) == 2048
    assert options["reference_model"] == reference


def test_ms_swift(tmp_path: Path) -> None:
    options = asked(tmp_path, "grpo.sh", SWIFT)
    assert (options["algorithm"], options["prompts_per_step"], options["response"]) == ("grpo", 8, "2048")
    assert (options["strategy"], options["engine_memory_fraction"]) == ("zero3", 0.3)


def test_axolotl(tmp_path: Path) -> None:
    options = asked(tmp_path, "grpo.yaml", AXOLOTL)
    assert (options["algorithm"], options["generations"], options["prompts_per_step"]) == ("grpo", 4, 2)
    notes = read_settings(tmp_path / "grpo.yaml")[0].notes
    assert any("give `generation_gpus`" in note for note in notes)


def test_lengths_of_a_trainer_are_said_to_be_the_longest(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(GRPO, encoding="utf-8")
    notes = " ".join(filled(None, {}, [tmp_path / "train.py"]).notes)
    assert "prompts and responses are taken to be as long as the trainer lets them be" in notes
