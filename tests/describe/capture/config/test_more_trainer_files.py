"""Further trainers: files and command lines written after each trainer's documentation."""

import json
from pathlib import Path
from typing import Any

import pytest

from epochcast.describe.capture.config.config_file import read_settings
from epochcast.describe.capture.config.setting import ConfigSettings
from epochcast.errors import BadInput
from epochcast.predict.forecast.job_settings import filled

pytest.importorskip("yaml", reason="the extra yaml is not installed")

SWIFT = r"""
# 22 GB
CUDA_VISIBLE_DEVICES=0,1 \
NPROC_PER_NODE=2 \
swift sft \
    --model Qwen/Qwen2.5-7B-Instruct \
    --tuner_type lora \
    --dataset AI-ModelScope/alpaca-gpt4-data-zh#500 \
              swift/self-cognition#300 \
    --torch_dtype bfloat16 \
    --num_train_epochs 1 \
    --per_device_train_batch_size 1 \
    --lora_rank 8 \
    --target_modules all-linear \
    --gradient_accumulation_steps 16 \
    --max_length 2048 \
    --dataloader_num_workers 4 \
    --output_dir output
"""
SIMPLE_TUNER = {
    "--model_family": "sdxl",
    "--model_type": "lora",
    "--lora_rank": 16,
    "--train_batch_size": 2,
    "--resolution": 1,
    "--resolution_type": "area",
    "--mixed_precision": "bf16",
    "--optimizer": "adamw_bf16",
    "--max_train_steps": 3000,
    "--num_train_epochs": 0,
    "--gradient_checkpointing": "true",
    "--base_model_precision": "int8-quanto",
    "--data_backend_config": "config/multidatabackend.json",
}
ENVIRONMENT = """
export MODEL_TYPE='lora'
export MODEL_NAME="stabilityai/stable-diffusion-xl-base-1.0"
export RESOLUTION=1024
export TRAIN_BATCH_SIZE=4
export MAX_NUM_STEPS=30000
export USE_GRADIENT_CHECKPOINTING=true
export OPTIMIZER="adamw_bf16"
export MIXED_PRECISION="bf16"
export TRAINER_EXTRA_ARGS="--lora_rank=64 --base_model_precision=nf4-bnb"
"""
MEGATRON = r"""
#!/bin/bash
GPUS_PER_NODE=8
NNODES=2
TP=2
MODEL_ARGS=(
    --num-layers 32
    --hidden-size 4096
    --ffn-hidden-size 14336
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8
    --seq-length 8192
    --position-embedding-type rope
    # --num-experts 8
    --normalization RMSNorm
    --swiglu
    --untie-embeddings-and-output-weights
    "--vocab-size 128256"
)
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size 128
    --train-iters 1000
    --bf16
    --use-distributed-optimizer
)
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES \
    pretrain_gpt.py ${MODEL_ARGS[@]} "${TRAINING_ARGS[@]}" \
    --tensor-model-parallel-size $TP --sequence-parallel --num-workers 2
"""
NEMO = """
trainer: {devices: 8, num_nodes: 1, precision: bf16, max_steps: 100}
model:
  micro_batch_size: 4
  global_batch_size: 64
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 1
  encoder_seq_length: 2048
  num_layers: 24
  hidden_size: 2048
  ffn_hidden_size: 5440
  num_attention_heads: 16
  activation: fast-swiglu
  share_embeddings_and_output_weights: false
  sequence_parallel: true
  activations_checkpoint_granularity: full
  tokenizer: {library: megatron, type: GPT2BPETokenizer}
  optim: {name: distributed_fused_adam, lr: 2e-4}
  data: {num_workers: 4}
"""
AUTOMODEL = """
step_scheduler: {global_batch_size: 32, local_batch_size: 4, num_epochs: 2}
model:
  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained
  pretrained_model_name_or_path: meta-llama/Llama-3.2-1B
distributed: {_target_: nemo_automodel.components.distributed.fsdp2.FSDP2Manager, tp_size: 1, cp_size: 1}
peft: {_target_: nemo_automodel.components._peft.lora.PeftConfig, match_all_linear: true, dim: 16}
dataset: {_target_: nemo_automodel.components.datasets.llm.squad, dataset_name: rajpurkar/squad}
optimizer: {_target_: torch.optim.Adam, lr: 1e-5}
"""
PLANS = {
    "dataset_name": "Dataset003_Liver",
    "plans_name": "nnUNetPlans",
    "experiment_planner_used": "ExperimentPlanner",
    "configurations": {
        "2d": {"batch_size": 12, "patch_size": [512, 512]},
        "3d_fullres": {"batch_size": 2, "patch_size": [128, 112, 96]},
    },
    "foreground_intensity_properties_per_channel": {"0": {"max": 1.0}, "1": {"max": 2.0}},
}
LEROBOT = {
    "dataset": {"repo_id": "lerobot/pusht"},
    "policy": {"type": "diffusion", "use_amp": True},
    "batch_size": 64,
    "steps": 200_000,
    "num_workers": 8,
}
TRL = """
model_name_or_path: Qwen/Qwen2-0.5B
dataset_name: tatsu-lab/alpaca
num_train_epochs: 1
packing: true
per_device_train_batch_size: 2
gradient_accumulation_steps: 8
use_peft: true
lora_r: 32
lora_target_modules: all-linear
load_in_4bit: true
attn_implementation: flash_attention_2
bf16: true
"""
DIFFUSERS = r"""
export MODEL_NAME="stable-diffusion-v1-5/stable-diffusion-v1-5"
accelerate launch --mixed_precision="fp16" --num_processes 4 train_text_to_image_lora.py \
  --pretrained_model_name_or_path=$MODEL_NAME --dataset_name=lambdalabs/naruto-blip-captions \
  --resolution=512 --train_batch_size=4 --num_train_epochs=10 --rank=8 --mixed_precision=fp16 \
  --learning_rate=1e-04 --max_grad_norm=1 --seed=42 --output_dir="out" > log.txt
"""
YOLO = r"""
EPOCHS=30
yolo detect train model=yolov3.pt data=coco.yaml epochs=$EPOCHS batch=32 imgsz=512 device=0,1,2,3
"""


def read(folder: Path, name: str, content: str | dict[str, Any]) -> ConfigSettings:
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    first, *_ = read_settings(folder / name)
    return first


def values(settings: ConfigSettings) -> dict[str, Any]:
    return {setting.option: setting.value for setting in settings.settings}


def test_ms_swift(tmp_path: Path) -> None:
    settings = read(tmp_path, "train.sh", SWIFT)
    assert settings.kind == "ms-swift"
    assert values(settings) == {
        "model": "Qwen/Qwen2.5-7B-Instruct",
        "gpus": 2,
        "lora": 8,
        "lora_dropout": 0.05,
        "lora_targets": ("all-linear",),
        "samples": 800,
        "input_shape": (2048,),
        "batch": 1,
        "accumulate": 16,
        "epochs": 1,
        "precision": "amp_bf16",
        "weights": "bf16",
        "checkpointing": True,
        "workers": 4,
        "optimizer": "adamw",
    }
    assert (settings.unread, settings.not_modelled) == ((), ())


def test_ms_swift_names_deepspeed_by_a_word(tmp_path: Path) -> None:
    (tmp_path / "train.sh").write_text("swift sft --model gpt2 --tuner_type full --deepspeed zero3\n")
    assert filled(None, {}, [tmp_path / "train.sh"]).options["strategy"] == "zero3"


def test_simpletuner(tmp_path: Path) -> None:
    settings = read(tmp_path, "config.json", SIMPLE_TUNER)
    assert settings.kind == "SimpleTuner"
    assert values(settings) == {
        "model": "stabilityai/stable-diffusion-xl-base-1.0",
        "lora": 16,
        "lora_targets": ("to_q", "to_k", "to_v", "0"),
        "lora_dropout": 0.0,
        "input_shape": (4, 128, 128),
        "batch": 2,
        "max_steps": 3000,
        "precision": "amp_bf16",
        "weights": "bf16",
        "optimizer": "adamw",
        "checkpointing": True,
        "host_class": "diffusion_trainer",
        "quantize": "w8",
    }
    assert (settings.unread, settings.not_modelled) == ((), ())


def test_simpletuners_environment_holds_more_options(tmp_path: Path) -> None:
    options = values(read(tmp_path, "config.env", ENVIRONMENT))
    assert (options["batch"], options["lora"], options["quantize"], options["max_steps"]) == (4, 64, "nf4-dq", 30000)


def test_megatron_from_a_shell_script(tmp_path: Path) -> None:
    settings = read(tmp_path, "train.sh", MEGATRON)
    assert settings.kind == "Megatron-LM"
    assert values(settings) == {
        "model": "decoder:layers=32,hidden=4096,heads=32,ffn=14336,kv_heads=8,vocab=128256,tied=0",
        "gpus": 16,
        "nodes": 2,
        "strategy": "dp8,tp2,zero1",
        "batch": 1,
        "train_batch_size": 128,
        "input_shape": (8192,),
        "max_steps": 1000,
        "sequence_parallel": True,
        "precision": "bf16_master",
        "workers": 2,
        "optimizer": "adamw",
        "host_class": "large_trainer",
    }
    assert (settings.unread, settings.notes) == ((), ())


# 128 samples of an update over 8 data parallel ranks of 1 sample each: 16 passes.
def test_passes_follow_from_the_data_parallel_ranks(tmp_path: Path) -> None:
    (tmp_path / "train.sh").write_text(MEGATRON)
    options = filled(None, {}, [tmp_path / "train.sh"]).options
    assert (options["accumulate"], options["samples"]) == (16, 128_000)


def test_megatron_from_a_file_of_arguments_takes_as_few_gpus_as_it_needs(tmp_path: Path) -> None:
    text = "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --pipeline-model-parallel-size 2 --fp16\n"
    settings = read(tmp_path, "arguments.txt", text)
    options = values(settings)
    assert (options["gpus"], options["strategy"], options["precision"]) == (2, "pp2", "fp16_master")
    assert options["model"] == "decoder:layers=4,hidden=64,heads=4,vocab=50304,style=gpt,tied=1"
    assert any("vocabulary" in note for note in settings.notes)


def test_megatron_counts_the_tokens_in_front_of_a_query_in_its_window(tmp_path: Path) -> None:
    sizes = "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --vocab-size 50304"
    for more, read_as in (
        ("--window-size 1023,0 --window-attn-skip-freq 6", "window=1024,global_every=6"),
        ("--window-size 127,0", "window=128"),
        ("--window-size -1,0", None),
    ):
        text = values(read(tmp_path, "arguments.txt", f"{sizes} {more}"))["model"]
        sizes_read = ",".join(part for part in text.split(",") if part.startswith(("window", "global")))
        assert sizes_read == (read_as or ""), more


def test_nemo(tmp_path: Path) -> None:
    settings = read(tmp_path, "gpt.yaml", NEMO)
    assert settings.kind == "NeMo"
    options = values(settings)
    assert options["model"] == "decoder:layers=24,hidden=2048,heads=16,ffn=5440,vocab=50432,tied=0"
    assert (options["gpus"], options["strategy"], options["checkpointing"]) == (8, "dp4,tp2,zero1", True)
    assert (options["batch"], options["train_batch_size"], options["precision"]) == (4, 64, "bf16_master")


def test_nemos_adapter_stands_beside_the_layers_of_its_decoder(tmp_path: Path) -> None:
    tuned = NEMO.rstrip() + "\n  peft: {peft_scheme: lora, lora_tuning: {adapter_dim: 16, target_modules: [mlp_fc1]}}\n"
    options = values(read(tmp_path, "tuning.yaml", tuned))
    assert (options["lora"], options["lora_targets"]) == (16, ("gate_up",))
    plain = NEMO.rstrip() + "\n  peft: {peft_scheme: lora}\n"
    assert values(read(tmp_path, "plain.yaml", plain))["lora_targets"] == ("qkv",)
    ia3 = read(tmp_path, "ia3.yaml", NEMO.rstrip() + "\n  peft: {peft_scheme: ia3}\n")
    assert any("ia3" in each for each in ia3.not_modelled)


def test_nemo_automodel(tmp_path: Path) -> None:
    settings = read(tmp_path, "recipe.yaml", AUTOMODEL)
    assert settings.kind == "NeMo AutoModel"
    options = values(settings)
    assert (options["model"], options["lora"], options["lora_targets"]) == (
        "meta-llama/Llama-3.2-1B",
        16,
        ("all-linear",),
    )
    assert (options["strategy"], options["dataset"], options["epochs"]) == ("fsdp", "squad", 2)


def test_nnunet_counts_iterations_and_names_the_plan(tmp_path: Path) -> None:
    settings = read(tmp_path, "nnUNetPlans.json", PLANS)
    options = values(settings)
    assert (options["batch"], options["input_shape"], options["steps_per_epoch"]) == (2, (2, 128, 112, 96), 250)
    assert (options["epochs"], options["optimizer"], options["precision"]) == (1000, "nesterov", "amp_fp16")
    assert options["model"] == f"nnunet:{tmp_path / 'nnUNetPlans.json'}@3d_fullres"
    assert filled(None, {}, [tmp_path / "nnUNetPlans.json"]).model == options["model"]
    assert filled("net.py:make", {}, [tmp_path / "nnUNetPlans.json"]).options["batch"] == 2


def test_lerobot_asks_for_the_network_of_its_policy(tmp_path: Path) -> None:
    options = values(read(tmp_path, "train_config.json", LEROBOT))
    assert (options["batch"], options["max_steps"], options["workers"]) == (64, 200_000, 8)
    assert (options["precision"], options["optimizer"]) == ("amp_fp16", "adam")
    with pytest.raises(BadInput, match=r"^train_config.json, policy.type: no network here for the policy 'diffusion'"):
        filled(None, {}, [tmp_path / "train_config.json"])


def test_trl(tmp_path: Path) -> None:
    settings = read(tmp_path, "sft.yaml", TRL)
    assert settings.kind == "TRL"
    assert values(settings) == {
        "model": "Qwen/Qwen2-0.5B",
        "dataset": "alpaca",
        "packing": True,
        "input_shape": (1024,),
        "lora": 32,
        "lora_targets": ("all-linear",),
        "lora_dropout": 0.05,
        "quantize": "nf4",
        "batch": 2,
        "accumulate": 8,
        "epochs": 1,
        "attention": "flash",
        "precision": "amp_bf16",
        "checkpointing": True,
        "optimizer": "adamw",
    }


def test_a_kto_command_names_the_reference_model(tmp_path: Path) -> None:
    settings = read(tmp_path, "kto.sh", "trl kto --model_name_or_path gpt2 --per_device_train_batch_size 2\n")
    assert settings.not_modelled == ("KTOConfig: the pass of the reference model",)


def test_sums_of_a_shell_are_worked_out(tmp_path: Path) -> None:
    text = """
    GPUS=4
    ROUNDS=$(( 64 / (2 * GPUS) ))
    ACCUMULATE="--gradient_accumulation_steps $(expr 32 / $GPUS)"
    swift sft --model gpt2 $ACCUMULATE --lora_rank $ROUNDS --max_length $((2 * 512))
    """
    options = values(read(tmp_path, "train.sh", text))
    assert (options["accumulate"], options["lora"], options["input_shape"]) == (8, 8, (1024,))


def test_an_option_that_shows_when_the_script_runs_is_named(tmp_path: Path) -> None:
    settings = read(tmp_path, "train.sh", "swift sft --model gpt2 --max_length $(wc -l file) --learning_rate $LR\n")
    assert settings.notes == ("max_length: known only when the script runs",)


def test_a_mesh_counts_gpus(tmp_path: Path) -> None:
    text = "base_model: gpt2\nmicro_batch_size: 1\ndp_shard_size: 4\ntensor_parallel_size: 2\n"
    settings = read(tmp_path, "axolotl.yml", text)
    assert values(settings)["gpus"] == 8
    assert settings.not_modelled == ("tensor_parallel_size (tensor parallelism: give `strategy`)",)
    text = "model: {_component_: torchtune.models.qwen2_5.qwen2_5_7b_base}\ncontext_parallel_dim: 1\n"
    assert read(tmp_path, "torchtune.yaml", text).not_modelled == ()


def test_examples_of_diffusers(tmp_path: Path) -> None:
    settings = read(tmp_path, "train.sh", DIFFUSERS)
    assert settings.kind == "diffusers' examples"
    options = values(settings)
    assert options["model"] == "stable-diffusion-v1-5/stable-diffusion-v1-5"
    assert (options["gpus"], options["batch"], options["lora"], options["epochs"]) == (4, 4, 8, 10)
    assert (options["input_shape"], options["precision"], options["weights"]) == ((4, 64, 64), "amp_fp16", "fp16")
    assert settings.unread == ()


def test_a_yolo_is_left_to_the_users_ultralytics(tmp_path: Path) -> None:
    file = tmp_path / "args.yaml"
    file.write_text("task: detect\nmode: train\nmodel: yolo11n.pt\nimgsz: 640\n", encoding="utf-8")
    assert filled(None, {}, [file]).model == "yolo11n"
    file.write_text("task: detect\nmode: train\nmodel: best.pt\nimgsz: 640\n", encoding="utf-8")
    with pytest.raises(BadInput, match="no network called 'best' here"):
        filled(None, {}, [file])


def test_yolos_command_line(tmp_path: Path) -> None:
    settings = read(tmp_path, "train.sh", YOLO)
    options = values(settings)
    assert (options["model"], options["gpus"], options["batch"], options["epochs"]) == ("yolov3", 4, 8, 30)
    assert settings.unread == ()


def test_slurm_says_nodes_and_gpus(tmp_path: Path) -> None:
    text = "#SBATCH --nodes=2\n#SBATCH --gres=gpu:h100:4\nsrun python sft.py --model_name_or_path gpt2 --use_peft\n"
    assert (values(read(tmp_path, "job.sbatch", text))["gpus"], values(read(tmp_path, "job.sh", text))["nodes"]) == (
        8,
        2,
    )


def test_a_script_without_a_training_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^setup.sh has no command that starts a training known here \(.*torchtune"):
        read(tmp_path, "setup.sh", "pip install torch\npython prepare.py --out data\n")


def test_a_command_that_names_a_file_reads_it(tmp_path: Path) -> None:
    (tmp_path / "train.yml").write_text("base_model: gpt2\nmicro_batch_size: 3\nsequence_len: 256\n")
    command = "accelerate launch --num_processes 4 -m axolotl.cli.train train.yml --num_epochs 2\n"
    options = values(read(tmp_path, "go.sh", command))
    assert (options["batch"], options["epochs"], options["gpus"]) == (3, 2, 4)


def test_what_is_on_is_named_also_where_true_equals_one(tmp_path: Path) -> None:
    zero = {"stage": 3, "zero_quantized_weights": True, "zero_hpz_partition_size": 1}
    document = {"train_micro_batch_size_per_gpu": 4, "zero_optimization": zero, "compile": {"enabled": True}}
    settings = read(tmp_path, "ds.json", document)
    assert settings.not_modelled == ("zero_optimization.zero_quantized_weights",)
    assert values(settings)["compile"] == "inductor"


def test_a_lightning_data_module_says_its_workers(tmp_path: Path) -> None:
    document = {"trainer": {"devices": 2}, "data": {"init_args": {"batch_size": 64, "num_workers": 6}}}
    options = values(read(tmp_path, "cli.yaml", document))
    assert (options["batch"], options["workers"], options["gpus"]) == (64, 6, 2)


def test_tensor_parallelism_of_accelerate_is_named(tmp_path: Path) -> None:
    text = "distributed_type: FSDP\nnum_processes: 8\nfsdp_config: {fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP}\n"
    mesh = "parallelism_config: {parallelism_config_dp_shard_size: 4, parallelism_config_tp_size: 2}\n"
    settings = read(tmp_path, "fsdp.yaml", text + mesh)
    assert settings.unread == ()
    assert [what.partition(" ")[0] for what in settings.not_modelled] == [
        "parallelism_config.parallelism_config_tp_size"
    ]


def test_kohya_reads_the_file_of_data_sets_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "data.toml").write_text("[[datasets]]\nbatch_size = 2\nresolution = [768, 768]\n", encoding="utf-8")
    command = (
        "accelerate launch sdxl_train_network.py --pretrained_model_name_or_path sd_xl_base_1.0.safetensors "
        "--network_module networks.lora --network_dim 8 --dataset_config data.toml --cache_latents\n"
    )
    options = values(read(tmp_path, "train.sh", command))
    assert (options["batch"], options["input_shape"], options["encoders"]) == (2, (4, 96, 96), "text")


def test_diffusers_scripts_run_encoders_unless_they_cache_them(tmp_path: Path) -> None:
    command = (
        "accelerate launch {} --pretrained_model_name_or_path=stabilityai/stable-diffusion-xl-base-1.0 --resolution=512"
    )
    options = values(read(tmp_path, "a.sh", command.format("train_text_to_image_lora_sdxl.py")))
    assert options["encoders"] == "all"
    assert "encoders" not in values(read(tmp_path, "b.sh", command.format("train_text_to_image_sdxl.py")))
    settings = read(tmp_path, "c.sh", command.format("train_controlnet_sdxl.py") + " --optimizer prodigy")
    assert "a ControlNet" in settings.not_modelled[0]
