from typing import Any

import pytest

from epochcast.errors import EpochcastError
from epochcast.measure.bench.link_fit import collective_of, link_fits
from epochcast.measure.bench.measurements import MeasuredMachine, Measurement

ASK: dict[str, Any] = {"backend": "gloo", "collective": "all_reduce", "ranks": 2, "size_bytes": 1024}


def row(seconds: float, **ask: Any) -> Measurement:
    return Measurement("collective", "c", MeasuredMachine("m"), {**ASK, **ask}, seconds=seconds)


def test_a_link_is_fitted_to_two_sizes() -> None:
    (fit,) = link_fits([row(2e-4 + 1e-6), row(2e-4 + 1e-3, size_bytes=1024 * 1000)])
    assert fit.link().latency_seconds == pytest.approx(1e-4, rel=0.01)


@pytest.mark.parametrize(
    "ask",
    [
        {"ranks": None}, {"ranks": 1}, {"ranks": True}, {"ranks": "2"}, {"ranks": 10**26}, {"size_bytes": 0},
        {"size_bytes": 10**26}, {"size_bytes": None}, {"collective": "gossip"}, {"collective": None},
    ],
)  # fmt: skip
def test_a_question_that_makes_no_sense_is_refused(ask: dict[str, Any]) -> None:
    with pytest.raises(EpochcastError, match=r"^c: "):
        collective_of(row(1e-3, **ask))
