import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.decide.plan.learning import CriticalBatch, critical_batch, critical_batches
from epochcast.errors import BadInput, UnknownName

sizes = st.integers(1, 10**6)


# by hand: at the critical batch a job needs twice its fewest samples, at a small one just about these
def test_the_law_by_hand() -> None:
    critical = CriticalBatch("a task", 1000)
    assert critical.epochs_factor(1000, 1) == pytest.approx(2, rel=0.002)
    assert critical.epochs_factor(3000, 1000) == pytest.approx(2)


@given(batch=sizes, more=sizes, reference=sizes, size=st.floats(1, 1e6))
def test_a_larger_batch_needs_more_epochs_and_fewer_steps(batch: int, more: int, reference: int, size: float) -> None:
    critical = CriticalBatch("a task", size)
    small, large = (critical.epochs_factor(each, reference) for each in (batch, batch + more))
    assert small <= large
    assert large / (batch + more) <= small / batch * (1 + 1e-9)


@given(reference=sizes, size=st.floats(1, 1e6))
def test_the_reference_batch_needs_what_was_said(reference: int, size: float) -> None:
    assert CriticalBatch("a task", size).epochs_factor(reference, reference) == pytest.approx(1)


# by hand, Kaplan et al. 2020: 2e8 / 3^(1/0.21) tokens is 1.07 million
def test_a_language_model_by_its_loss() -> None:
    found = critical_batch("loss=3.0")
    assert found.size == pytest.approx(2e8 / 3 ** (1 / 0.21))
    assert found.size == pytest.approx(1.07e6, rel=0.01)
    assert found.samples(1024) == pytest.approx(found.size / 1024)
    with pytest.raises(BadInput, match="is in tokens: this job has samples"):
        found.samples(None)


def test_tasks_have_a_source_and_numbers_are_taken() -> None:
    assert critical_batch("ImageNet").size == 15_000
    assert critical_batch("15k").size == critical_batch("15000").size == 15_000
    assert all("arXiv" in one.source for one in critical_batches().values())


@pytest.mark.parametrize(("text", "error"), [("imagenot", UnknownName), ("loss=cheap", BadInput), ("0", BadInput)])
def test_what_is_no_critical_batch_is_refused(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        critical_batch(text)


def test_a_recalled_value_says_so_once() -> None:
    assert critical_batch("imagenet").credit.count("recalled") == 1
