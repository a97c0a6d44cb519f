"""Loops that people write themselves: the common shapes of `epoch` and `step` in a line, and a user's own pattern.

These are the last resort of recognition and say so: one fitting line counts little.
"""

import re

from epochcast.errors import BadInput, UnknownName
from epochcast.observe.logs.formats.format_rule import GROUPS, Format, LineRule, format_of
from epochcast.observe.logs.formats.usual_words import PYTHON_LOGGING

HF_DICT = format_of(
    "hf_dict",
    "Hugging Face Trainer",
    LineRule("{'loss'", r"\{'loss': '?(?P<loss>NUM)'?,.*?'epoch': '?(?P<epochs_done>[\d.]+)"),
    LineRule(
        "'epoch': ",
        r"^\s*\{(?!'(?:eval|test|train)_)'.*\bl(?:r|earning_rate|oss\w*)': .*'epoch': '?(?P<epochs_done>[\d.]+)'?",
    ),
    LineRule(
        '"learning_rate"',
        r'\{"loss": (?P<loss>NUM), "learning_rate": NUM, "epoch": (?P<epochs_done>[\d.]+), "step": (?P<step>\d+)',
    ),
    LineRule("'train_runtime'", r"\{'train_runtime': '?(?P<elapsed_seconds>NUM)", "end"),
    LineRule("'eval_loss'", r"\{'eval_loss': ", "validation"),
    LineRule("max_steps=", r"Trainer.*\bmax_steps=(?P<total>[1-9]\d*)", "header"),
    LineRule("Num Epochs", r"Num Epochs = (?P<epochs>[\d,]+)", "header"),
    LineRule("optimization steps", r"Total optimization steps = (?P<total>[\d,]+)", "header"),
    sureness=0.35,  # a bar beside it says more: steps, the total, the time
)

FORMATS: tuple[Format, ...] = (PYTHON_LOGGING, HF_DICT)


def pattern_format(pattern: str) -> Format:
    """A user's own lines: a regular expression whose named groups are those of `rule`."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise BadInput(f"`pattern` is no regular expression: {error}") from error
    for name in compiled.groupindex:
        if name not in GROUPS:
            raise UnknownName("group for `pattern`", name, GROUPS)
    positions = {"step", "index", "batch", "batch_index", "epochs_done", "epochs_done_index"}
    if not positions.intersection(compiled.groupindex):
        raise BadInput(f"`pattern` needs a named group for the position: one of {', '.join(sorted(positions))}")
    # Whether a log counts epochs from 0 or from 1 is seen from the log.
    either_way = re.sub(r"(\(\?P[<=])epoch([>)])", r"\1epoch_any\2", pattern)
    return format_of("pattern", "your pattern", LineRule("", either_way))
