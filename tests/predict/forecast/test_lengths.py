from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.errors import EpochcastError
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.cost.cost_models import find_cost_model
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.lengths import Lengths, lengths_in
from epochcast.predict.forecast.placement import place
from epochcast.predict.forecast.session import Session

ways = st.sampled_from(("padded", "packed", "full"))


@st.composite
def distributions(draw: st.DrawFn) -> Lengths:
    most = draw(st.integers(1, 100_000))
    return Lengths(draw(st.floats(1, most)), most, draw(ways))


def asked(model: CostModel, lengths: str | None, batch: int = 16, **options: Any) -> Forecast:
    job = Job("bert_base_classification", batch=batch, samples=10_000, lengths=lengths, **options)
    return forecast_job(job, place("A100"), Session(model))


# Even between 1 and 101 (their mean is the middle): the longest of n is 1 + 100 · n/(n + 1) on average.
@pytest.mark.parametrize(("samples", "longest"), [(1, 51), (3, 76), (9, 91), (99, 100)])
def test_the_longest_of_even_lengths_by_hand(samples: int, longest: int) -> None:
    for lengths in (Lengths(51, 101, "padded"), lengths_in("quantiles=1/101,padded")):
        assert lengths.computed(samples)[0] == pytest.approx(longest, abs=1)


def test_the_longest_of_drawn_lengths_is_as_simulated(tmp_path: Path) -> None:
    drawn, random = [], Random(7)
    for _ in range(4000):
        drawn.append(min(512, 1 + int(random.lognormvariate(4.5, 0.9))))
    file = tmp_path / "lengths.txt"
    file.write_text("\n".join(map(str, drawn)))
    lengths = lengths_in(f"file={file},padded")
    assert lengths.mean == pytest.approx(sum(drawn) / len(drawn))
    for samples in (1, 8, 32):
        longest = [max(random.choices(drawn, k=samples)) for _ in range(4000)]
        assert lengths.computed(samples)[0] == pytest.approx(sum(longest) / len(longest), rel=0.03)


@given(distributions(), st.integers(1, 4096), st.integers(1, 4096))
def test_batches_are_no_shorter_than_the_mean_and_grow_with_their_samples(
    lengths: Lengths, fewer: int, more: int
) -> None:
    short, spread = lengths.computed(min(fewer, more))
    long, _ = lengths.computed(max(fewer, more))
    assert 1 <= short <= long <= lengths.most
    assert spread >= 0
    assert long >= 0.98 * lengths.mean - 1


@given(distributions())
def test_what_is_written_is_read_back(lengths: Lengths) -> None:
    again = lengths_in(lengths.text)
    assert (again.most, again.way) == (lengths.most, lengths.way)
    assert again.mean == pytest.approx(lengths.mean, rel=1e-5)


# 10,000 texts of 180 tokens fill 3,516 sequences of 512.
def test_packed_texts_are_fewer_sequences(per_kernel: CostModel) -> None:
    packed = asked(per_kernel, "mean=180,max=512,packed")
    assert packed.samples == -(-10_000 * 180 // 512)
    assert packed.tokens_per_sample == packed.sequence_length == 512
    assert packed.tokens == pytest.approx(1_800_000, rel=1e-3)


def test_padding_costs_time_and_no_tokens() -> None:
    padded, full = (asked(find_cost_model(), f"mean=60,max=512,{way}") for way in ("padded", "full"))
    assert padded.sequence_length is not None and 60 < padded.sequence_length < 512 == full.sequence_length
    assert padded.samples == full.samples == 10_000
    assert padded.step_seconds.mid < full.step_seconds.mid
    assert padded.tokens == full.tokens == 600_000
    assert padded.tokens_per_second == pytest.approx(60 * 16 / padded.step_seconds.mid)


# A batch with the longest text comes sooner or later.
def test_memory_is_that_of_the_longest(per_kernel: CostModel) -> None:
    whole = asked(per_kernel, None, input_shape=(512,))
    for way in ("packed", "full"):
        assert asked(per_kernel, f"mean=60,max=512,{way}").peak_bytes == whole.peak_bytes
    padded = asked(per_kernel, "mean=60,max=512,padded")
    assert padded.allocated_bytes == pytest.approx(whole.allocated_bytes, rel=0.02)
    assert (padded.reserved_bytes or 0) >= (whole.reserved_bytes or 0)
    assert padded.longest_sequence == 512
    assert any("the longest batch, 16 x 512 tokens" in note for note in padded.warnings)


def test_ranks_with_short_batches_wait_for_the_longest(per_kernel: CostModel) -> None:
    job = Job("bert_base_classification", batch=8, lengths="mean=60,max=512,padded")
    length, spread = Lengths(60, 512, "padded").computed(8)
    alike = Job("bert_base_classification", batch=8, input_shape=(length,))
    both = [forecast_job(one, place("A100", gpus=8), Session(per_kernel)).step_seconds.mid for one in (job, alike)]
    assert both[0] > (1 + 0.5 * spread) * both[1]


def test_tokens_are_counted_by_their_texts(per_kernel: CostModel) -> None:
    job = Job("gpt2", batch=4, tokens=1_800_000, lengths="mean=180,max=512,padded")
    assert forecast_job(job, place("A100"), Session(per_kernel)).samples == 10_000


def test_a_file_is_read_when_the_job_is_made(tmp_path: Path) -> None:
    file = tmp_path / "lengths.txt"
    file.write_text("10\n20\n30\n900\n")
    job = Job("gpt2", batch=4, lengths=f"file={file},max=512,padded")
    file.unlink()
    assert job.longest_shape == (512,)
    assert Job.from_dict(job.as_dict()) == job
    assert job.length_distribution is not None and job.length_distribution.mean == pytest.approx(572 / 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mean=180,max=512", "does not say what is done with short texts: padded, bucketed, packed, full"),
        ("padded", "must say the mean and the maximum"),
        ("mean=600,max=512,padded", "the mean of lengths must be between 1 and the maximum of 512, got 600"),
        ("mean=nan,max=512,padded", "the mean of lengths must be"),
        ("mean=x,max=512,padded", "'x' in 'mean=x,max=512,padded' is no number"),
        ("mean=180,max=many,padded", "'many' in"),
        ("median=180,max=512,padded", "no part of lengths called 'median'"),
        ("180", "is no distribution of lengths; write it like mean=180,max=512,padded"),
        ("quantiles=5,padded", "quantiles are two lengths or more"),
        ("quantiles=1/inf,padded", "quantiles are two lengths or more"),
        ("file=nowhere.txt,padded", "no file of lengths 'nowhere.txt'"),
        ("", "is no distribution of lengths"),
    ],
)
def test_what_is_no_distribution_is_one_clear_line(text: str, message: str) -> None:
    with pytest.raises(EpochcastError) as caught:
        Job("gpt2", lengths=text)
    assert message in str(caught.value)


@pytest.mark.parametrize("content", ["12\nlong\n", "0\n", "", "1.5\n", "-3\n"])
def test_a_file_of_other_things_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "lengths.txt"
    file.write_text(content)
    with pytest.raises(EpochcastError, match=r"lengths\.txt must hold"):
        Job("gpt2", lengths=f"file={file},packed")


def test_lengths_are_of_texts() -> None:
    job = Job("resnet50", batch=32, lengths="mean=200,max=512,padded")
    with pytest.raises(
        EpochcastError, match=r"`lengths` is for language models, which take one number of tokens: resnet50"
    ):
        forecast_job(job, place("A100"))


def test_batches_jump_between_lengths_and_the_longest_is_among_them() -> None:
    drawn = lengths_in("mean=180,max=512,padded").batches(4)
    assert len(drawn) == 33 and max(drawn) == 512 and drawn[16] == 512
    assert drawn[:16] == drawn[17:] and list(drawn[:16]) != sorted(drawn[:16])
    assert lengths_in("mean=180,max=512,packed").batches(4) == (512,)


def test_batches_of_texts_that_are_about_as_long_are_as_long_as_texts_are() -> None:
    bucketed, padded = (lengths_in(f"mean=180,max=512,{way}").computed(8)[0] for way in ("bucketed", "padded"))
    assert bucketed == pytest.approx(180, abs=2) and padded > 300


# k = 1, the exponential distribution with a mean of 1000: 1 - e^-1 of the texts have at most 1000 tokens, and these
# 1000 · (1 - 2/e)/(1 - 1/e) = 418 on average; cut at 1000, all have 1000 · (1 - 1/e) = 632.
def test_texts_above_the_maximum_are_dropped_or_cut() -> None:
    dropped, cut = (lengths_in(f"mean=1000,std=1000,max=1000,{limit},padded") for limit in ("dropped", "cut"))
    assert dropped.mean == pytest.approx(418, rel=0.01)
    assert cut.mean == pytest.approx(632, rel=0.01)
    assert cut.computed(1)[0] == pytest.approx(632, rel=0.02)
    assert lengths_in(dropped.text).computed(8) == dropped.computed(8)


@pytest.mark.parametrize(
    "text", ["mean=9,max=8,cut,padded", "mean=9,std=3,max=8,padded", "mean=9,std=0,max=8,cut,padded"]
)
def test_lengths_before_a_limit_need_mean_deviation_and_limit(text: str) -> None:
    with pytest.raises(EpochcastError, match="std"):
        lengths_in(text)
