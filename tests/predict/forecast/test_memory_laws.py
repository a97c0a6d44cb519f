"""Laws of memory over random jobs: sharding, freezing and checkpointing never need more, a larger batch never less.
The seed is fixed; every job of the table is one that broke a law at some time, or was drawn.
"""

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from tests.every import every

from epochcast.describe.capture.zoo import ZOO
from epochcast.errors import BadInput
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import place
from epochcast.predict.forecast.rank_memory import job_memory
from epochcast.predict.forecast.session import Session
from epochcast.predict.memory.caching_allocator import LARGE_SEGMENT_BYTES
from epochcast.predict.memory.lifetimes import Role, lifetimes
from epochcast.predict.memory.peak import PeakMemory

SESSION = Session()
STAGES = ("ddp", "zero1", "zero2", "zero3")
SLOW = ("405b", "70b", "235b", "deepseek", "kimi", "gpt_oss", "30b", "120b", "13b", "6_7b", "rcnn", "retinanet")


def drawn(seed: int, count: int) -> list[dict[str, Any]]:
    chosen = random.Random(seed)
    names = [name for name in sorted(ZOO) if not any(part in name for part in SLOW)]
    return [
        {
            "model": chosen.choice(names),
            "batch": chosen.choice([1, 2, 4, 8, 16, 32]),
            "precision": chosen.choice(
                ["fp32", "tf32", "amp_fp16", "amp_bf16", "bf16", "bf16_deepspeed", "bf16_master"]
            ),
            "optimizer": chosen.choice(["sgd", "momentum", "adam", "adamw", "adam8bit", "lion", "adafactor"]),
            "accumulate": chosen.choice([1, 1, 2]),
        }
        for _ in range(count)
    ]


# Once: zero3 above zero2 (vgg19, inception), zero1 above ddp (vgg13_bn, bert), less at a larger batch (vit_b_32).
KNOWN = [
    {"model": "vgg19", "batch": 16, "precision": "bf16_master", "optimizer": "adam8bit"},
    {"model": "inception_reduced", "batch": 32, "precision": "bf16", "optimizer": "sgd", "accumulate": 2},
    {"model": "vgg13_bn", "batch": 2, "precision": "bf16", "optimizer": "momentum"},
    {"model": "bert_base_mlm", "batch": 4, "precision": "bf16_master", "optimizer": "adam8bit", "compile": "inductor"},
    {"model": "vit_b_32", "batch": 4, "precision": "amp_fp16", "optimizer": "adamw"},
]
JOBS = [*KNOWN, *drawn(20, 10)]


def name(job: dict[str, Any]) -> str:
    return "-".join(str(value) for value in job.values())


def memory(job: Job, gpus: int = 1, strategy: str | None = None, device: str = "A100") -> PeakMemory:
    placement = place(device, gpus=gpus, strategy=strategy)
    assert job.batch is not None
    model = SESSION.model(job)
    return job_memory(job, placement, model, SESSION.trace(model, job.recipe(job.batch, placement.device)), SESSION)


@every("options", JOBS, ids=name)
def test_every_stage_of_zero_needs_no_more_than_the_one_before(options: dict[str, Any]) -> None:
    job = Job(**options)
    for gpus in (2, 16):
        found = [memory(job, gpus, strategy) for strategy in STAGES]
        assert [m.bytes.mid for m in found] == sorted((m.bytes.mid for m in found), reverse=True)
        live = [int(m.timeline.total_bytes.max()) for m in found]
        assert live == sorted(live, reverse=True)  # by its storages, whatever an allocator makes of them
        assert all(m.breakdown["fragmentation"] >= 0 for m in found)
        assert all(sum(m.breakdown.values()) == m.bytes.mid for m in found)


@every("options", JOBS, ids=name)
def test_a_larger_batch_needs_no_less_but_for_a_segment_of_the_allocator(options: dict[str, Any]) -> None:
    job = Job(**options)
    assert job.batch is not None
    found = [memory(replace(job, batch=batch)) for batch in (job.batch, 2 * job.batch, 3 * job.batch, 8 * job.batch)]
    for smaller, larger in pairwise(found):
        assert larger.bytes.mid >= smaller.bytes.mid - LARGE_SEGMENT_BYTES


# Once: one kernel that reads and writes the state was taken for one that keeps it to itself.
ONE_KERNEL = [
    {"model": "gpt2", "batch": 2, "precision": "amp_bf16", "optimizer": "adamw", "update_style": "fused"},
    {"model": "gpt2", "batch": 2, "precision": "bf16_master", "optimizer": "adamw8bit"},
    {"model": "resnet18", "batch": 8, "precision": "amp_fp16", "optimizer": "paged_lion8bit"},
    {"model": "gpt2", "batch": 2, "precision": "bf16", "optimizer": "adamw", "lora": 4, "four_bit": True},
]


@every("options", [*JOBS, *ONE_KERNEL], ids=name)
def test_compiling_removes_no_parameters_gradients_states_or_masters(options: dict[str, Any]) -> None:
    kept = (Role.PARAMETERS, Role.GRADIENTS, Role.OPTIMIZER_STATE)

    def kept_bytes(compiler: str) -> list[int]:
        job = Job(**{**options, "compile": compiler})
        assert job.batch is not None
        lives = lifetimes(SESSION.trace(SESSION.model(job), job.recipe(job.batch)))
        return [lives.total_bytes(role) for role in kept]

    eager = kept_bytes("none")
    assert all(kept_bytes(compiler) == eager for compiler in ("inductor", "reduce-overhead", "xla"))


# Once: more fragments with frozen weights (82 MiB), or with attention computed again.
FRAGMENTED = [
    {"model": "resnet50", "batch": 128, "precision": "tf32", "optimizer": "sgd"},
    {"model": "resnet18", "batch": 512, "precision": "fp32", "optimizer": "sgd"},
]


@every("options", [*JOBS, *FRAGMENTED], ids=name)
def test_checkpointing_and_freezing_never_need_more(options: dict[str, Any]) -> None:
    job = Job(**options)
    whole = memory(job)
    for patterns in (("*weight",), ("*",)):
        frozen = memory(replace(job, freeze=patterns))
        assert frozen.bytes.mid <= whole.bytes.mid
        assert frozen.breakdown["fragmentation"] >= 0
    for checkpointing in (True, "selective"):
        try:
            again = memory(replace(job, checkpointing=checkpointing))
        except BadInput:  # neither blocks nor attention
            continue
        assert again.bytes.mid <= whole.bytes.mid
        assert again.breakdown["fragmentation"] >= 0


def test_what_the_host_holds_the_gpu_does_not() -> None:
    job = Job("gpt2", batch=1, optimizer="adamw", precision="bf16_deepspeed")
    for gpus, strategy in ((1, None), (8, "zero3")):
        plain, state, all_of_it = (
            memory(replace(job, offload=what), gpus, strategy) for what in ("none", "optimizer", "parameters")
        )
        assert plain.bytes.mid > state.bytes.mid > all_of_it.bytes.mid
        assert "optimizer_state" not in all_of_it.breakdown


MODELS = {
    "gemma2_2b": "hf:Gemma2Config(num_hidden_layers=4)",
    "gpt2": "hf:GPT2Config(n_layer=4)",
    "t5_small": "hf:T5Config",
    "bert": "hf:BertConfig(num_hidden_layers=3)",
}


@every("model", MODELS.values())
@every("precision", ["amp_bf16", "bf16"])
def test_the_law_of_zero_holds_for_configurations_of_hugging_face(model: str, precision: str) -> None:
    pytest.importorskip("transformers")
    job = Job(model, batch=1, precision=precision, optimizer="adamw", input_shape=(128,))
    found = [memory(job, 8, strategy, "H100") for strategy in STAGES]
    assert [m.bytes.mid for m in found] == sorted((m.bytes.mid for m in found), reverse=True)
    # Gathered unit by unit: far less than all parameters at a time.
    whole, gathered = found[2].timeline.live_bytes, found[3].timeline.live_bytes
    assert (gathered["parameters"] + gathered["gathered"]).max() < 0.8 * whole["parameters"].max()
    # Every stage has the same buffers of NCCL.
    ddp, sharded = (each.bytes.mid - each.breakdown["communication"] for each in (found[0], found[3]))
    assert sharded < 0.8 * ddp
