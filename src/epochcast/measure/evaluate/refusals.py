"""Why rows were not forecast, grouped by reason, with a remedy for each.

Messages name the cell that was wrong, so a thousand rows may have a hundred messages. Rows whose errors have the same
class (`measure.tables.row_errors`, `epochcast.errors`) form one group; other errors are grouped by their message.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from epochcast import errors
from epochcast.base.record import Record, json_hidden
from epochcast.measure.tables import row_errors
from epochcast.measure.tables.row_errors import FailedRow

MOST_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class RefusedRows(Record):
    """One reason: its rows, what would cure it ("" where nothing is known), and the models or words it was about.

    `option` is the parameter of `evaluate` that lets these rows in, where there is one.
    """

    reason: str
    rows: int
    cure: str
    examples: tuple[str, ...] = ()
    option: str = json_hidden(default="")


class RefusalRule(NamedTuple):
    """What is said of a group of rows, and how to cure it."""

    reason: str
    cure: str = ""
    option: str = ""


def refusals(failures: Iterable[FailedRow]) -> tuple[RefusedRows, ...]:
    """The reasons of rows that failed, the most frequent first; rows that all say the same keep what they say."""
    rules: dict[str, RefusalRule] = {}
    examples: dict[str, Counter[str]] = {}
    texts: dict[str, set[str]] = {}
    for failure in failures:
        rule, example = _grouped(failure)
        rules[rule.reason] = rule
        examples.setdefault(rule.reason, Counter())[example] += 1
        texts.setdefault(rule.reason, set()).add(failure.reason)
    groups = [
        RefusedRows(
            next(iter(texts[reason])) if len(texts[reason]) == 1 else reason,
            examples[reason].total(),
            rule.cure,
            _most_frequent(examples[reason]),
            rule.option,
        )
        for reason, rule in rules.items()
    ]
    return tuple(sorted(groups, key=lambda group: (-group.rows, group.reason)))


def _most_frequent(counts: Counter[str]) -> tuple[str, ...]:
    return tuple(sorted(counts, key=lambda name: (-counts[name], name))[:MOST_EXAMPLES])


def _grouped(failure: FailedRow) -> tuple[RefusalRule, str]:
    """The rule and the example of one row: what its error is about, else its model."""
    if failure.error_class == row_errors.MissingCell.__name__:
        return MISSING.get(failure.about, RefusalRule(failure.reason)), failure.model
    rule = _RULES_BY_NAME.get(failure.error_class)
    return rule or RefusalRule(failure.reason), (failure.about if rule else "") or failure.model


_NAME_IT = "give a zoo name, timm:NAME, torchvision:NAME, hf:CONFIG, decoder:SIZES or a model file in `model`"
MISSING: Mapping[str, RefusalRule] = {
    "model": RefusalRule("no model", f"{_NAME_IT}; a line that cannot be read has none"),
    "device": RefusalRule("no device", "fill `device`"),
    "step_seconds": RefusalRule("no measured time", "fill `step_seconds`, or `samples_per_second` and its `unit`"),
    "batch_per_gpu": RefusalRule(
        "no batch", "fill `batch_per_gpu`, or `global_batch`; of a split model it is the micro-batch"
    ),
}
"""Rules for empty cells, by column."""
_CELL = RefusalRule("a cell that is no usable value", "correct the cell, or empty it where the column is optional")
RULES: Mapping[type[errors.EpochcastError], RefusalRule] = {
    errors.UnknownModel: RefusalRule("a name that is no model here", _NAME_IT),
    errors.UnknownDevice: RefusalRule(
        "a device that the catalogue does not have",
        "give a data sheet for it, or the name of a device with nearly the same chip",
    ),
    errors.UnpublishedDevice: RefusalRule("a device whose data sheet was never published", "give a data sheet for it"),
    errors.UnknownPrecision: RefusalRule(
        "a precision that is not known", "write fp32, tf32, amp_fp16, amp_bf16, fp16, bf16 or fp8 in `precision`"
    ),
    errors.UnknownCompiler: RefusalRule(
        "a compiler that is not known",
        "write inductor, reduce-overhead, xla or vendor in `compiled`, or true or false",
    ),
    errors.NoBuilder: RefusalRule(
        "a network that cannot be built here",
        "give a model file or hf:CONFIG in `model`; with the step on one GPU, `parameters` is enough",
    ),
    errors.CodeNotAllowed: RefusalRule(
        "a model that is Python code", "allow code, if you trust the table", option="allow_code"
    ),
    errors.InvalidLayout: RefusalRule(
        "the layout over GPUs is missing or does not fit",
        "fill `dp`, `tp`, `pp`, `zero`, `micro_batch` and `global_batch` so that they multiply to `gpus`",
    ),
    errors.InvalidField: _CELL,
    row_errors.InvalidCell: _CELL,
    row_errors.UnknownUnit: RefusalRule(
        "a `unit` that is not known", "write samples, tokens or steps in `unit`, or fill `step_seconds`"
    ),
    row_errors.DoubtfulRow: RefusalRule(
        "left out for their `quality`", "ask for doubtful rows, too", option="with_doubtful"
    ),
    row_errors.CaptureFailed: RefusalRule("the network could not be captured", "see the reason of each row"),
    row_errors.LessThanOneSample: RefusalRule(
        "less than one sample per GPU", "fill `tp`, `pp` and `cp`, whose ranks share a sample"
    ),
    row_errors.UnknownSampleLength: RefusalRule(
        "the length of a sample is not known", "fill `input_shape` (seq512) or `sequence_length`"
    ),
    row_errors.UnknownImageSize: RefusalRule("the size of an image is not known", "fill `input_shape` (3x224x224)"),
    row_errors.UnknownNetworkSize: RefusalRule("the size of the network is not known", _NAME_IT),
    row_errors.UnknownBatchUnit: RefusalRule("a batch in a unit that is not known"),
    row_errors.SparseGradients: RefusalRule("sparse gradients of embedding tables are not modelled"),
    row_errors.NoSingleGpuRow: RefusalRule(
        "no single-GPU row to go by", "add the row of one GPU with the same system, model, batch and precision"
    ),
    row_errors.OtherProfileDevice: RefusalRule(
        "a device that the profile is not of", "leave the profile out, or leave these rows out"
    ),
    row_errors.OtherTrainingData: RefusalRule("trained on other data than the row says"),
    row_errors.LoaderBound: RefusalRule("steps that wait for a loader whose speed is not known"),
    row_errors.OtherSoftware: RefusalRule("timed with software that cannot be forecast"),
}
"""Rules by class of error."""
_RULES_BY_NAME = {kind.__name__: rule for kind, rule in RULES.items()}
