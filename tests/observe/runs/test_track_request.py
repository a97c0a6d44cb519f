import re
from inspect import signature

import pytest

import epochcast as ec
from epochcast.errors import BadInput
from epochcast.observe.runs.track_request import TRACK_OPTIONS, TrackRequest


def test_what_belongs_together_is_checked_from_birth() -> None:
    for options, words in (
        ({"total": 0}, "total must be above 0, got 0"),
        ({"what_if": "4xV100"}, "`what_if` needs `job`"),
        ({"job": "mine", "what_if": " ,"}, "`what_if` must name GPUs"),
        ({"run": " "}, "`run` is the name"),
        ({"format": "caffe", "pattern": "x"}, "give `format` or `pattern`, not both"),
    ):
        with pytest.raises(BadInput, match=re.escape(words)):
            TrackRequest(**options)


def test_python_has_the_names_of_the_request() -> None:
    declared = {option.name for option in TRACK_OPTIONS}
    assert set(signature(ec.follow).parameters) - declared == {"log", "forecast", "poll_seconds"}
    assert set(signature(ec.read_log).parameters) - declared == {"path"}


def test_following_checks_its_keywords_as_the_request_does() -> None:
    with pytest.raises(BadInput, match="total must be above 0, got -1"):
        next(iter(ec.follow("train.log", total=-1)))
