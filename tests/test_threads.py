"""Threads share models, steps and catalogues; what they are told does not depend on who asks first."""

import gc
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import epochcast as ec
from epochcast.base.caching import Remembered
from epochcast.describe.capture.zoo import zoo_model

THREADS = 8
JOBS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("resnet18", {"device": "V100", "batch": 32}),
    ("resnet18", {"device": "A100", "batch": 64, "precision": "amp", "gpus": 4}),
    ("resnet18", {"device": "A100", "batch": 8, "gpus": 8, "strategy": "zero3"}),
    ("gpt2", {"device": "A100", "batch": 4, "precision": "bf16", "optimizer": "adamw"}),
    ("gpt2", {"device": "A100", "batch": 2, "gpus": 4, "strategy": "dp2,tp2", "accumulate": 4}),
    ("gpt2", {"device": "T4", "batch": 64, "optimizer": "adam"}),  # does not fit: remedies are looked for
    ("bert_base", {"device": "V100", "batch": 8, "checkpointing": True}),
    ("mnist_cnn", {"device": "RTX 3090", "batch": 256, "optimizer": "adam"}),
)


def answer(job: tuple[str, Mapping[str, Any]]) -> dict[str, object]:
    name, options = job
    return ec.forecast(name, **options).as_dict()


def forget_everything() -> None:
    for thing in gc.get_objects():
        if type(thing) is Remembered:  # asking a stranger for its class may run code
            thing.cache.clear()


def test_eight_threads_get_the_answers_of_one() -> None:
    """Every thread asks for all jobs, each in another order, when nothing was built or read yet."""
    forget_everything()
    alone = [answer(job) for job in JOBS]
    forget_everything()
    start = Barrier(THREADS)

    def ask(thread: int) -> list[dict[str, object]]:
        places = [(thread + step) % len(JOBS) for step in range(len(JOBS))]
        start.wait()
        found = {place: answer(JOBS[place]) for place in places}
        return [found[place] for place in range(len(JOBS))]

    with ThreadPoolExecutor(THREADS) as threads:
        assert all(answers == alone for answers in threads.map(ask, range(THREADS)))


def test_one_step_is_asked_by_eight_threads_at_once() -> None:
    """The same trace object: what it derives is derived by several threads at the same time."""
    forget_everything()
    model = zoo_model("resnet18")
    start = Barrier(THREADS)

    def ask(_: int) -> dict[str, object]:
        start.wait()
        return ec.forecast(model, device="V100", batch=16, gpus=4, strategy="zero3").as_dict()

    with ThreadPoolExecutor(THREADS) as threads:
        answers = list(threads.map(ask, range(THREADS)))
    assert all(found == answers[0] for found in answers)
