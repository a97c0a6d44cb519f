"""Laws of memory over strategies: sharding more never takes more."""

import pytest
from tests.every import every

from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import place
from epochcast.predict.forecast.rank_memory import rank_memory
from epochcast.predict.forecast.session import Session
from epochcast.predict.memory.peak import PeakMemory

SESSION = Session()


def memory(strategy: str, gpus: int, model: str, **options: object) -> PeakMemory:
    job = Job(model, batch=1, optimizer="adamw", **options)  # type: ignore[arg-type]
    trace = SESSION.trace(SESSION.model(job), job.recipe(1))
    return rank_memory(job, place("H100", gpus=gpus, strategy=strategy), trace)


@every("model", ["gpt2", "bert_base", "opt_125m", "t5_small", "pythia_1b", "tinyllama_1_1b"])
@every("precision", ["fp32", "bf16", "amp_bf16", "bf16_master"])
@every("gpus", [2, 8])
def test_every_stage_of_zero_holds_no_more_than_the_one_before(model: str, precision: str, gpus: int) -> None:
    found = [memory(s, gpus, model, precision=precision) for s in ("ddp", "zero1", "zero2", "zero3")]
    allocated = [m.allocated_bytes for m in found]
    assert allocated == sorted(allocated, reverse=True)
    assert [m.reserved_bytes for m in found] == sorted((m.reserved_bytes for m in found), reverse=True)


@pytest.mark.parametrize("model", ["gpt2", "pythia_1b"])
@pytest.mark.parametrize("accumulate", [1, 8])
def test_splitting_more_holds_no_more(model: str, accumulate: int) -> None:
    options = {"precision": "bf16_master", "accumulate": accumulate}
    by_tensor = [memory(f"dp2,tp{t}", 2 * t, model, **options).allocated_bytes for t in (1, 2, 4)]
    assert by_tensor == sorted(by_tensor, reverse=True)
    plain, cut = (memory("tp4", 4, model, sequence_parallel=is_cut, **options) for is_cut in (False, True))
    assert cut.allocated_bytes <= plain.allocated_bytes
    assert cut.timeline.live_bytes["activations"].max() < plain.timeline.live_bytes["activations"].max()
    whole, sharded = (memory(f"dp4,tp2{more}", 8, model, **options) for more in ("", ",zero1"))
    assert sharded.breakdown["optimizer_state"] == pytest.approx(whole.breakdown["optimizer_state"] / 4, rel=0.01)
