"""How weights are kept: one policy, by the figures that are published for it."""

import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.precision import PRECISIONS, precision_with
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.describe.graph.weights import WEIGHTS
from epochcast.errors import BadInput, UnknownName
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.strategies.strategy_table import find_strategy
from epochcast.predict.memory.lifetimes import Role
from epochcast.predict.memory.peak import step_on

STATES = (Role.PARAMETERS, Role.GRADIENTS, Role.OPTIMIZER_STATE)


def trace(precision: str, model: str = "gpt2", optimizer: str = "adamw") -> Trace:
    return zoo_model(model, (64,)).trace(Recipe(1, precision=precision, optimizer=optimizer))


def state_bytes(step: Trace, strategy: str = "single", gpus: int = 1) -> float:
    """Parameters, gradients and optimizer state of a rank, without what is gathered or on its way."""
    shares = find_strategy(strategy, gpus).memory_shares(step, gpus)
    held = step_on(step, None, shares=shares)
    own = [name not in held.lives.rank_own for name in held.lives.names]
    sizes = held.size_bytes(1)
    return float(sum(sizes[(held.lives.roles == role) & own].sum() for role in STATES))


# Bytes a parameter with Adam: the table of `describe.graph.weights`.
@pytest.mark.parametrize(
    ("precision", "weights", "each"),
    [
        ("fp32", "fp32", 16),
        ("amp_bf16", "fp32", 16),
        ("bf16", "bf16", 8),
        ("bf16", "bf16+master", 16),
        ("bf16", "bf16+master+fp32grad", 18),
        ("fp16", "fp16+master", 16),
    ],
)
def test_bytes_of_a_parameter_with_adam(precision: str, weights: str, each: int) -> None:
    rules = precision_with(precision, weights)
    assert rules.weights.name == weights
    step = trace(rules.name)
    assert state_bytes(step) == pytest.approx(each * step.parameter_counts[0], rel=0.001)


def test_llama_2_7b_takes_sixteen_to_eighteen_bytes_a_parameter() -> None:
    for weights, each in (("bf16+master", 16), ("bf16+master+fp32grad", 18)):
        step = trace(precision_with("bf16", weights).name, "llama2_7b")
        assert state_bytes(step) == pytest.approx(each * 6.738e9, rel=0.001)


# Rajbhandari et al. 2020, "ZeRO", table 1: 7.5 billion parameters on 64 GPUs, in GB.
@pytest.mark.parametrize(("strategy", "gigabytes"), [("ddp", 120), ("zero1", 31.4), ("zero2", 16.6), ("zero3", 1.88)])
def test_the_table_of_zero(strategy: str, gigabytes: float) -> None:
    step = trace("fp16_deepspeed", "llama2_7b", "adam")
    scale = 7.5e9 / step.parameter_counts[0]
    assert scale * state_bytes(step, strategy, 64) == pytest.approx(gigabytes * 1e9, rel=0.01)


def test_gradients_in_half_are_widened_for_the_update_alone() -> None:
    step = trace("bf16_deepspeed")
    update = next(op for op in step.ops if op.name == "optimizer.widen")
    assert {t.dtype.bytes for t in update.inputs} == {2} and {t.dtype.bytes for t in update.outputs} == {4}
    live = step_on(step, None).live_bytes(1)
    assert live[Role.GRADIENTS].max() == 2 * step.parameter_counts[0]


def test_every_precision_names_its_policy_and_every_policy_has_a_precision() -> None:
    assert {rules.weights.name for rules in PRECISIONS.values()} == set(WEIGHTS)
    for rules in PRECISIONS.values():
        assert precision_with(rules.name, rules.weights.name) == rules


def test_a_job_takes_its_precision_and_its_weights_together() -> None:
    assert Job("gpt2", weights="bf16+master").precision == "bf16_deepspeed"
    assert Job("gpt2", precision="bf16", weights="fp32").precision == "amp_bf16"
    assert Job("gpt2", precision="bf16_megatron").precision == "bf16_master"
    job = Job("gpt2", precision="amp_bf16", weights="bf16")
    assert (job.precision, job.weights) == ("amp_bf16_half", "bf16")
    assert Job.from_dict(job.as_dict()) == job
    assert Job("gpt2", precision="bf16", weights="bf16").precision == "bf16"


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(BadInput, match="weights in bf16 do not go with fp16; known: fp32, fp16"):
        Job("gpt2", precision="fp16", weights="bf16")
    with pytest.raises(UnknownName, match="no way to keep weights called 'bf32'"):
        Job("gpt2", weights="bf32")
