from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.errors import BadInput
from epochcast.observe.logs.log_metric import MetricReader
from epochcast.observe.runs.early_stopping import StoppingRule, StoppingWatch
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.tracker import Tracker


def watched(values: list[float], text: str = "patience=3,metric=val_loss") -> StoppingWatch:
    watch = StoppingWatch(StoppingRule.parse(text))
    for value in values:
        watch.add(value)
    return watch


def test_a_rule_is_read_as_it_is_written() -> None:
    rule = StoppingRule.parse("patience=5, metric=val_acc, mode=max, min_delta=0.01")
    assert rule == StoppingRule(5, "val_acc", "max", 0.01)


@pytest.mark.parametrize(
    "text", ["metric=val_loss", "patience=0", "patience=x", "patience=3,mode=up", "3", "patience=3,a=1"]
)
def test_a_rule_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        StoppingRule.parse(text)


def test_patience_ends_as_keras_ends_it() -> None:
    """Better at 0.7 only by less than the delta: three in a row were not better."""
    watch = watched([1.0, 0.71, 0.705, 0.9], "patience=3,min_delta=0.01")
    assert (watch.best, watch.waited, watch.has_stopped) == (0.71, 2, False)
    watch.add(float("nan"))
    assert watch.has_stopped and watch.ends(100) == (0, 0, 0)


def test_by_hand_one_evaluation_from_the_end() -> None:
    """Patience 1, one of one better: r = 2/3 · 1/2 at the next, so it ends there with chance 2/3."""
    low, middle, high = watched([1.0], "patience=1").ends(50)
    assert (low, middle) == (1, 1)
    assert high > 1


def test_a_metric_that_always_gets_better_lasts_longer_than_one_that_does_not() -> None:
    better = watched([1 / n for n in range(1, 21)]).ends(1000)
    stuck = watched([0.1, *(0.2, 0.3, 0.09) * 6, 0.2]).ends(1000)
    assert better[1] > stuck[1]


@given(
    values=st.lists(st.floats(0, 1), min_size=1, max_size=40),
    patience=st.integers(1, 6),
    left=st.integers(0, 200),
)
def test_it_never_ends_before_its_patience_nor_after_the_total(values: list[float], patience: int, left: int) -> None:
    watch = watched(values, f"patience={patience}")
    low, middle, high = watch.ends(left)
    assert low <= middle <= high <= left
    assert watch.has_stopped or low >= min(left, patience - watch.waited)


def test_the_interval_reaches_from_the_end_of_patience_to_the_total() -> None:
    """Ten epochs of a hundred of a hundred steps at half a second; the best was two epochs ago, patience is four."""
    tracker = Tracker(total=10_000, stopping=StoppingWatch(StoppingRule(4)))
    for step in range(0, 1001, 10):
        tracker.add(Report(step=step, clock_seconds=0.5 * step + 0.1))
    for loss in (9, 8, 7, 6, 5, 4, 3, 2, 2.5, 2.5):
        assert tracker.stopping is not None
        tracker.stopping.add(loss)
    standing = tracker.standing()
    early = standing.early_stopping
    assert early is not None and early.stop_step is not None
    assert early.stop_step.low == pytest.approx(1200)
    assert standing.remaining_seconds.low <= 100 < standing.remaining_seconds.mid < 4500
    assert (early.waited, early.patience, early.best, early.has_stopped) == (2, 4, 2, False)


LINES = {
    "keras": b"Epoch 1/9\n10/10 - 2s - loss: 0.5 - val_loss: 0.25 - val_acc: 0.5\n10/10 - loss: 0.5 - val_loss: 0.25\n",
    "trainer": b"{'val_loss': 0.25, 'epoch': 1.0}\r\n{'val_loss': '2.5e-1', 'epoch': 2.0}\r\n",
    "json": b'{"step": 1, "val_loss": 0.25}\n{"step": 2, "my/val_loss": 7}\n{"step": 2, "val_loss":0.25}\n',
    "bar": b"Epoch 1:  3%|x| val_loss=0.5]\rEpoch 1:  4%|x| val_loss=0.5]\rEpoch 2:  1%|x| val_loss=0.25]\r",
    "csv": b"epoch,loss,val_loss\n0,1.5,0.5\n1,1.0,0.25\n",
}


@pytest.mark.parametrize("name", LINES)
def test_a_metric_is_found_in_every_way_of_writing_it(name: str, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(LINES[name])
    reader = MetricReader(log, "val_loss")
    found = reader.read()
    assert (len(found), found[-1]) == (2, 0.25)
    with log.open("ab") as file:
        file.write(b"\n{'val_loss': 0.125}\n" if name != "csv" else b"2,1.0,0.125\n")
    assert reader.read() == [0.125]
    log.write_bytes(b"val_loss: 3\n")
    assert reader.read() == [3.0]
