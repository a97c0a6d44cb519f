"""What a rank holds in addition to its share: FSDP's root unit, buckets in half, one reduce bucket."""

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.predict.forecast.strategies.sequence_parallel import scattered_rank
from epochcast.predict.memory.gather_units import units
from epochcast.predict.memory.peak import peak_memory
from epochcast.predict.memory.sharding import REDUCE_BUCKET_VALUES, RankShares, zero1_bucket_fraction, zero_shares

GPT2 = zoo_model("gpt2", (64,))
VALUES = 124_439_808
TABLES = 50_257 * 768 + 1024 * 768
NORM = 2 * 768


def trace(precision: str = "bf16", **options: object) -> Trace:
    return GPT2.trace(Recipe(2, "sgd", precision, **options))  # type: ignore[arg-type]


def test_the_root_unit_is_what_no_block_has() -> None:
    """GPT-2's tied table of words, its positions and the last norm."""
    step = trace()
    elements = {p.name: p.elements for p in step.parameters}
    assert sum(elements[name] for name in units(step).outside) == TABLES + NORM


def test_fsdp_keeps_its_root_unit_for_the_whole_step() -> None:
    """Of eight ranks each gathers seven eighths of it, and lets go of blocks in between."""
    step = trace()
    kept, by_module = (
        peak_memory(step, shares=zero_shares(3, 8, step, keeps_root=keeps)).timeline.live_bytes["gathered"]
        for keeps in (True, False)
    )
    root = 2 * (TABLES + NORM) * 7 // 8
    passes = [place for place, op in enumerate(step.ops) if op.phase.value != "update"]
    assert min(kept[place + 1] for place in passes) >= root
    assert min(by_module[place + 1] for place in passes) < root


def test_half_gradients_that_are_summed_in_float32_are_in_the_buckets_alone() -> None:
    """Two bytes in buckets and four in the sums; without buckets the half ones wait beside the sums."""
    step = trace("bf16_master")
    bucketed, alone = (peak_memory(step, shares=RankShares(bucket_fraction=fraction)) for fraction in (0.5, 0.0))
    assert bucketed.timeline.live_bytes["buckets"].max() == 2 * VALUES
    assert bucketed.timeline.total_bytes.max() <= alone.timeline.total_bytes.max() + 2 * VALUES
    at_end = [place for place, op in enumerate(step.ops) if op.phase.value == "backward"][-1] + 1
    saved = alone.timeline.live_bytes["temporaries"][at_end] - bucketed.timeline.live_bytes["temporaries"][at_end]
    assert saved == 2 * VALUES


def test_deepspeed_reduces_from_a_bucket_of_fixed_size() -> None:
    assert zero1_bucket_fraction(trace("fp16_deepspeed")) == 1.0
    large = zoo_model("tinyllama_1_1b", (8,)).trace(Recipe(1, "sgd", "fp16_deepspeed"))
    assert zero1_bucket_fraction(large) == REDUCE_BUCKET_VALUES / large.parameter_counts[1]
    assert zero1_bucket_fraction(trace("bf16_master")) == 0.5


def test_ranks_that_keep_what_they_gather_hold_the_inputs_of_two_products_a_layer_whole() -> None:
    """Inputs of queries, keys and values and of the first linear layer: 2 samples, 64 tokens, 768 values, 12 layers.
    Of each the rank had its quarter.
    """
    held = []
    for keeps in (False, True):
        rank = scattered_rank(trace(keep_gathered=keeps, sequence_parallel=True), 4)
        held.append(int(peak_memory(rank.trace).timeline.live_bytes["activations"].max()))
    whole = 2 * 12 * 2 * 64 * 768 * 2
    assert 0.6 * whole <= held[1] - held[0] <= 1.1 * whole
