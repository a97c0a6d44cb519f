"""Fits, tight, does not fit: the interval of a peak against the card, in every answer alike."""

from dataclasses import replace

import pytest

import epochcast as ec
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.hardware.catalogue import find_device
from epochcast.predict.memory.device_context import context_bytes, usable_bytes
from epochcast.predict.memory.largest_batch import largest_batch
from epochcast.predict.memory.peak import peak_memory
from epochcast.predict.memory.verdict import DOES_NOT_FIT, FITS, HIGH_FACTOR, TIGHT, memory_verdict, sure_bytes

V100 = find_device("V100")
PAIRS = [("resnet18", "V100"), ("vgg16", "GTX 1080"), ("gpt2", "RTX 3090"), ("mobilenet_v2", "T4"), ("unet", "K80")]


def test_a_verdict_by_hand() -> None:
    """Without a driver and a context a step is sure to fit up to 1/1.11 of the memory."""
    bare = replace(V100, kind="cpu", memory_bytes=111 * 2**27)
    assert context_bytes(bare) == 0
    assert sure_bytes(bare) == pytest.approx(100 * 2**27, abs=1)
    words = [memory_verdict(size * 2**27, bare, is_replayed=True) for size in (99, 101)]
    assert words == [FITS, TIGHT]
    assert memory_verdict(99 * 2**27, bare, is_replayed=False) == DOES_NOT_FIT


@pytest.mark.parametrize(("model", "device"), PAIRS)
def test_verdicts_follow_the_interval_which_no_card_cuts(model: str, device: str) -> None:
    card, trace = find_device(device), zoo_model(model).trace(Recipe(1, optimizer="adam"))
    limit = largest_batch(trace, card).limit
    seen = set()
    for batch in sorted({max(1, round(limit * part)) for part in (0.2, 0.7, 0.85, 0.9, 0.95, 1.0, 1.2)}):
        found = peak_memory(trace.rebatch(batch), card)
        assert found.bytes.high == pytest.approx(HIGH_FACTOR * found.bytes.mid)
        if found.fits:
            # within a byte of rounding
            assert (found.verdict == TIGHT) == (found.bytes.high > usable_bytes(card) + 2)
        else:
            assert found.verdict == DOES_NOT_FIT
        seen.add(found.verdict)
    assert seen == {FITS, TIGHT, DOES_NOT_FIT}


@pytest.mark.parametrize(("model", "device"), PAIRS)
def test_the_safe_batch_reads_fits_and_the_next_that_does_not_reads_tight(model: str, device: str) -> None:
    card, trace = find_device(device), zoo_model(model).trace(Recipe(1, optimizer="adam"))
    most = largest_batch(trace, card)
    assert peak_memory(trace.rebatch(most.safe), card).verdict == FITS
    assert peak_memory(trace.rebatch(most.expected), card).verdict in (FITS, TIGHT)
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
    plan = ec.plan("resnet50", devices=["V100"], gpus=[1], samples=10**6, optimizer="adam", batch=most.expected)
    assert {candidate.forecast.memory_verdict for candidate in plan.candidates} <= {FITS, TIGHT}
    assert TIGHT in {candidate.as_dict()["memory_verdict"] for candidate in plan.candidates}
    own = ec.plan("resnet50", devices=["V100"], gpus=[1], samples=10**6, optimizer="adam")
    assert {candidate.forecast.memory_verdict for candidate in own.candidates} == {FITS}
