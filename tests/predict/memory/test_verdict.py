"""Fits, tight, does not fit: the probability that a peak is on the card, in every answer alike."""

from itertools import pairwise

import pytest

import epochcast as ec
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.hardware.catalogue import find_device
from epochcast.interval import Interval
from epochcast.predict.memory.largest_batch import largest_batch
from epochcast.predict.memory.peak import peak_memory
from epochcast.predict.memory.verdict import (
    DOES_NOT_FIT,
    FITS,
    TIGHT,
    interval_probability,
    is_fitting,
    verdict_of,
)

PAIRS = [("resnet18", "V100"), ("vgg16", "GTX 1080"), ("gpt2", "RTX 3090"), ("mobilenet_v2", "T4"), ("unet", "K80")]


def test_words_by_hand() -> None:
    assert [verdict_of(share) for share in (0.99, 0.95, 0.94, 0.5, 0.06, 0.05, 0.01)] == [
        *(FITS, FITS, TIGHT, TIGHT, TIGHT),
        *(DOES_NOT_FIT, DOES_NOT_FIT),
    ]
    assert [is_fitting(TIGHT, share) for share in (0.6, 0.4)] == [True, False]
    assert is_fitting(None) is None


def test_the_ends_of_an_interval_are_its_quantiles() -> None:
    peak = Interval(8e9, 10e9, 14e9)
    shares = [interval_probability(peak, usable) for usable in (8e9, 10e9, 14e9)]
    assert shares == pytest.approx([0.05, 0.5, 0.95])
    assert [interval_probability(Interval.exact(10e9), usable) for usable in (9e9, 10e9)] == [0.0, 1.0]


@pytest.mark.parametrize(("model", "device"), PAIRS)
def test_much_larger_batches_are_never_surer_to_fit(model: str, device: str) -> None:
    """Of batches that differ by a tenth the larger may be luckier: its blocks may fall better into segments."""
    card, trace = find_device(device), zoo_model(model).trace(Recipe(1, optimizer="adam"))
    limit = largest_batch(trace, card).limit
    batches = sorted({max(1, round(limit * part)) for part in (0.2, 0.4, 0.7, 1.0, 2.0)})
    peaks = [peak_memory(trace.rebatch(batch), card) for batch in batches]
    shares = [peak.fits_probability or 0.0 for peak in peaks]
    assert all(later <= before for before, later in pairwise(shares))
    assert (peaks[0].verdict, peaks[-1].verdict) == (FITS, DOES_NOT_FIT)


@pytest.mark.parametrize(("model", "device"), PAIRS)
def test_the_safe_batch_reads_fits_and_the_next_that_does_not_reads_tight(model: str, device: str) -> None:
    card, trace = find_device(device), zoo_model(model).trace(Recipe(1, optimizer="adam"))
    most = largest_batch(trace, card)
    assert peak_memory(trace.rebatch(most.safe), card).verdict == FITS
    assert peak_memory(trace.rebatch(most.expected), card).verdict in (FITS, TIGHT)
    assert peak_memory(trace.rebatch(most.expected), card).fits
    later = (peak_memory(trace.rebatch(most.safe + more), card).verdict for more in range(1, 100))
    assert next(word for word in later if word != FITS) == TIGHT


def test_forecast_advise_inspect_and_plan_agree() -> None:
    advice = ec.advise("resnet50", device="V100", optimizer="adam")
    most = advice.max_batch
    words = [
        ec.forecast("resnet50", device="V100", optimizer="adam", batch=batch).memory_verdict
        for batch in (advice.choice.batch, most.safe, most.expected, 2 * most.limit)
    ]
    assert advice.memory_verdict == words[0] == words[1] == FITS
    assert words[2:] == [TIGHT, DOES_NOT_FIT]
    assert (advice.forecast.fits_probability or 0) >= 0.95
    plan = ec.plan("resnet50", devices=["V100"], gpus=[1], samples=10**6, optimizer="adam", batch=most.expected)
    assert {candidate.forecast.memory_verdict for candidate in plan.candidates} <= {FITS, TIGHT}
    assert TIGHT in {candidate.as_dict()["memory_verdict"] for candidate in plan.candidates}
    own = ec.plan("resnet50", devices=["V100"], gpus=[1], samples=10**6, optimizer="adam")
    assert {candidate.forecast.memory_verdict for candidate in own.candidates} == {FITS}
