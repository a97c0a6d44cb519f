"""Why rows were not forecast, grouped by reason, with what would cure each.

Reasons name the cell that was wrong, so that a thousand rows may have a hundred reasons. Rules at the foot tell which
are the same, from the first that matches; a reason without a rule stands for itself.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from epochcast.measure.tables.run_table import FailedRow

MOST_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class RefusedRows:
    """One reason: its rows, what would cure it ("" where nothing is known), and the models or words it was about."""

    reason: str
    rows: int
    cure: str
    examples: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """With the names of the JSON contract."""
        return {"reason": self.reason, "rows": self.rows, "cure": self.cure, "examples": list(self.examples)}


@dataclass(frozen=True, slots=True)
class RefusalRule:
    """Reasons that match `pattern` are one; its group, where it has one, is the example, else the model is."""

    pattern: re.Pattern[str]
    reason: str
    cure: str


def refusals(failures: Iterable[FailedRow]) -> tuple[RefusedRows, ...]:
    """The reasons of rows that failed, the most frequent first; rows that all say the same keep what they say."""
    cures: dict[str, str] = {}
    examples: dict[str, Counter[str]] = {}
    texts: dict[str, set[str]] = {}
    for failure in failures:
        reason, cure, example = _grouped(failure)
        cures[reason] = cure
        examples.setdefault(reason, Counter())[example] += 1
        texts.setdefault(reason, set()).add(failure.reason)
    groups = [
        RefusedRows(
            next(iter(texts[reason])) if len(texts[reason]) == 1 else reason,
            examples[reason].total(),
            cure,
            _most_frequent(examples[reason]),
        )
        for reason, cure in cures.items()
    ]
    return tuple(sorted(groups, key=lambda group: (-group.rows, group.reason)))


def _most_frequent(counts: Counter[str]) -> tuple[str, ...]:
    return tuple(sorted(counts, key=lambda name: (-counts[name], name))[:MOST_EXAMPLES])


def _grouped(failure: FailedRow) -> tuple[str, str, str]:
    """Reason, cure and example of one row."""
    for rule in RULES:
        match = rule.pattern.search(failure.reason)
        if match:
            return rule.reason, rule.cure, match[1] if match.lastindex else failure.model
    return failure.reason, "", failure.model


def _rule(pattern: str, reason: str, cure: str) -> RefusalRule:
    return RefusalRule(re.compile(pattern), reason, cure)


_NAME_IT = "give a zoo name, timm:NAME, torchvision:NAME, hf:CONFIG, decoder:SIZES or a model file in `model`"
RULES: tuple[RefusalRule, ...] = (
    _rule(r"^no model$", "no model", f"{_NAME_IT}; a line that cannot be read has none"),
    _rule(r"^no model called '([^']*)'", "a name that is no model here", _NAME_IT),
    _rule(
        r"^no device called '([^']*)'",
        "a device that the catalogue does not have",
        "give a data sheet for it, or the name of a device with nearly the same chip",
    ),
    _rule(
        r"^device '([^']*)' is not in the catalogue",
        "a device whose data sheet was never published",
        "give a data sheet for it",
    ),
    _rule(r"^no device$", "no device", "fill `device`"),
    _rule(
        r"^neither step_seconds nor", "no measured time", "fill `step_seconds`, or `samples_per_second` and its `unit`"
    ),
    _rule(
        r"^no batch_per_gpu",
        "no batch",
        "fill `batch_per_gpu`, or `global_batch`; of a split model it is the micro-batch",
    ),
    _rule(
        r"^less than one sample per GPU",
        "less than one sample per GPU",
        "fill `tp`, `pp` and `cp`, whose ranks share a sample",
    ),
    _rule(
        r"does not say how many tokens a sample has|how many a sample has",
        "the length of a sample is not known",
        "fill `input_shape` (seq512) or `sequence_length`",
    ),
    _rule(
        r"cannot read image sizes|how large its images are|input size is not known",
        "the size of an image is not known",
        "fill `input_shape` (3x224x224)",
    ),
    _rule(
        r"does not say which of the family|does not say its size|a family, not a network",
        "the size of the network is not known",
        _NAME_IT,
    ),
    _rule(
        r"no builder|not a network",
        "a network that cannot be built here",
        "give a model file or hf:CONFIG in `model`; with the step on one GPU, `parameters` is enough",
    ),
    _rule(r"trained with sparse gradients", "sparse gradients of embedding tables are not modelled", ""),
    _rule(r"^left out for its quality: (.*)", "left out for their `quality`", "ask for doubtful rows, too"),
    _rule(
        r"^(\w+) must be (?:a |above|true|between|at |one )",
        "a cell that is no usable value",
        "correct the cell, or empty it where the column is optional",
    ),
    _rule(
        r"^the throughput counts (.*?); known",
        "a `unit` that is not known",
        "write samples, tokens or steps in `unit`, or fill `step_seconds`",
    ),
    _rule(
        r"^no precision called '([^']*)'",
        "a precision that is not known",
        "write fp32, tf32, amp_fp16, amp_bf16, fp16, bf16 or fp8 in `precision`",
    ),
    _rule(r"^weights in 4 bits", "weights in four bits are not modelled in tables", ""),
    _rule(r"would run Python code", "a model that is Python code", "allow code, if you trust the table"),
    _rule(
        r"^no single-GPU row",
        "no single-GPU row to go by",
        "add the row of one GPU with the same system, model, batch and precision",
    ),
    _rule(
        r"how its model was split|does not divide|is not \d+ GPUs|whole number of micro-batches|^ZeRO \d beside",
        "the layout over GPUs is missing or does not fit",
        "fill `dp`, `tp`, `pp`, `zero`, `micro_batch` and `global_batch` so that they multiply to `gpus`",
    ),
    _rule(r"rank and layers of its LoRA", "a LoRA of unknown size", ""),
    _rule(
        r"^no compiler called '([^']*)'",
        "a compiler that is not known",
        "write inductor, reduce-overhead, xla or vendor in `compiled`, or true or false",
    ),
    _rule(
        r"is a profile of|corrects",
        "a device that the profile is not of",
        "leave the profile out, or leave these rows out",
    ),
    _rule(r"^trained on", "trained on other data than the row says", ""),
    _rule(r"ended in (\w+):", "the network could not be captured", "see the reason of each row"),
)
"""From the special to the general."""
