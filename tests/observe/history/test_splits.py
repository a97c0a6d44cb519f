import numpy as np
import pytest

from epochcast.errors import BadInput, EpochcastError
from epochcast.observe.history.job_table import Jobs
from epochcast.observe.history.splits import default_splits, depths_of, split_of

JOBS = Jobs(
    {"batch_per_gpu": np.tile([8.0, 16.0, 32.0, 64.0], 6), "gpus": np.repeat([1.0, 2.0, 4.0], 8)},
    {
        "device": np.tile(["V100", "T4", "A100"], 8),
        "model": np.tile(["resnet18", "resnet34", "resnet50", "vgg16"], 6),
        "submitted_at": np.array([f"2026-01-{31 - day:02d}T12:00:00" for day in range(24)]),
    },
)


def test_every_row_is_tested_once_in_a_random_split() -> None:
    split = split_of("random:4", JOBS, seed=3)
    assert sorted(np.concatenate([test for _, test in split.parts]).tolist()) == list(range(24))
    assert all(not set(train) & set(test) for train, test in split.parts)


def test_a_random_split_is_the_same_for_the_same_seed() -> None:
    one, other = split_of("random", JOBS, 1), split_of("random", JOBS, 1)
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(one.parts, other.parts, strict=True))


def test_a_threshold_divides_below_and_above() -> None:
    ((train, test),) = split_of("batch>16", JOBS).parts
    assert JOBS.numbers["batch_per_gpu"][train].max() == 16
    assert JOBS.numbers["batch_per_gpu"][test].min() == 32
    assert split_of("batch>16", JOBS).is_outside


def test_a_share_is_that_of_the_different_values() -> None:
    ((train, _),) = split_of("gpus>50%", JOBS).parts
    assert set(JOBS.numbers["gpus"][train]) == {1.0, 2.0}


def test_of_every_group_the_largest_are_tested() -> None:
    """Batches of resnets on V100: their own largest, whatever others have; a group with one value is learned from."""
    jobs = Jobs(
        {"batch_per_gpu": np.array([8.0, 16.0, 32.0, 1.0, 2.0, 64.0])},
        {"model": np.array(["a", "a", "a", "b", "b", "c"]), "device": np.full(6, "V100")},
    )
    split = split_of("batch>60%:model+device", jobs)
    ((train, test),) = split.parts
    assert (train.tolist(), test.tolist(), split.is_outside) == ([0, 1, 3, 5], [2, 4], True)


def test_every_category_is_left_out_once() -> None:
    split = split_of("without:device", JOBS)
    assert len(split.parts) == 3
    for train, test in split.parts:
        assert not set(JOBS.categories["device"][train]) & set(JOBS.categories["device"][test])


def test_the_past_comes_before_what_came_after() -> None:
    ((train, test),) = split_of("time", JOBS).parts
    when = JOBS.categories["submitted_at"]
    assert max(when[train]) < min(when[test]) and len(test) == 5


def test_the_deepest_of_a_family_is_tested() -> None:
    ((_, test),) = split_of("deeper", JOBS).parts
    assert set(JOBS.categories["model"][test]) == {"resnet50"}
    assert depths_of(JOBS)[:4].tolist() == [18, 34, 50, 16]


def test_holdout_keeps_a_share_back() -> None:
    ((train, test),) = split_of("holdout:0.25", JOBS).parts
    assert (len(train), len(test)) == (18, 6)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("batch>64", "leaves nothing on one side: batch is 8 to 64"),
        ("sideways", "no split called 'sideways'"),
        ("random:1", "at least 2 parts"),
        ("holdout:2", "between 0 and 1"),
        ("without:colour", "no column to leave values of out called 'colour'"),
        ("without:device=P4", "no value of device called 'P4'"),
        ("time:device", "no column of times"),
        ("colour>3", "no column of numbers called 'colour'"),
        ("batch>60%:colour", "no column to group by called 'colour'"),
        ("batch>64:model", "needs a share of the values of each group"),
        ("gpus>50%:gpus", "gpus is the same in every group"),
    ],
)
def test_a_split_that_cannot_be_made_says_why(name: str, message: str) -> None:
    with pytest.raises(EpochcastError, match=message):
        split_of(name, JOBS)


def test_a_table_without_times_has_no_order_in_time() -> None:
    with pytest.raises(BadInput, match="no column says when"):
        split_of("time", JOBS.only(["device", "gpus"]))


def test_by_default_a_table_is_split_at_random_and_where_it_can_be_extrapolated() -> None:
    assert default_splits(JOBS.take(np.arange(12))) == ["random"]
    many = JOBS.take(np.tile(np.arange(24), 4))
    assert default_splits(many) == ["random", "batch>60%", "gpus>50%", "deeper"]
