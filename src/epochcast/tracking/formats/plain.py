"""Loops that people write themselves: the common shapes of `epoch` and `step` in a line, and a user's own pattern.

These are the last resort of recognition and say so: one fitting line counts little.
"""

import re

from epochcast.errors import BadInput, UnknownName
from epochcast.tracking.formats.rule import GROUPS, Format, Rule, format_of

_LOSS = r"(?:.*?\b[Ll]oss\w*\W{1,4}(?P<loss>NUM))?"
_TIME = r"(?:.*?\b(?:[Tt]ime|[Cc]ost [Tt]ime|[Ee]lapsed)\W{1,3}(?P<elapsed>DUR))?"
_REST = r"(?:.*?\b(?:ETA|eta|[Ee]stimated [Tt]ime)\W{1,3}(?P<remaining>DUR))?"
_EPOCH = r"\b[Ee][Pp][Oo][Cc][Hh]s?\W{0,4}(?P<epoch_any>\d+)"
_STEP = r"\b(?:[Ii]ter(?:ation)?s?|[Bb]atch|[Ss]teps?|[Uu]pdates?|global_step)"
_STEP_NEEDLES = ("ter", "tep", "atch", "pdate")

PYTHON_LOGGING = format_of(
    "python_logging",
    "a loop of its own",
    Rule("alidat", r"(?i)\b(?:validat|evaluat)\w*\b(?!.*\btrain)", "validation"),
    Rule(
        "poch",
        _EPOCH
        + r"\s*(?:/|of)\s*(?P<epochs>\d+)\W{0,8}"
        + _STEP
        + r"\W{0,4}(?P<batch>[\d,]+)\s*(?:/|of)\s*(?P<batches>[\d,]+)"
        + _LOSS,
    ),
    Rule("poch", _EPOCH + r"\W{0,8}" + _STEP + r"\W{0,4}(?P<batch>[\d,]+)\s*(?:/|of)\s*(?P<batches>[\d,]+)" + _LOSS),
    Rule("poch", _EPOCH + r"\W{1,3}\[\s*(?P<batch>[\d,]+)\s*/\s*(?P<batches>[\d,]+)(?:\s*\(\s*[\d.]+ ?%\))?\]" + _LOSS),
    *(
        Rule(needle, _STEP + r"\W{0,4}(?P<step>[\d,]+)\s*(?:/|of)\s*(?P<total>[\d,]+)" + _LOSS + _TIME + _REST)
        for needle in _STEP_NEEDLES
    ),
    Rule(
        "oss", r"(?!.*\b(?:[Vv]al|[Tt]est))" + _STEP + r"\W{0,4}(?P<step>[\d,]+)\b.*?\b[Ll]oss\w*\W{1,4}(?P<loss>NUM)"
    ),
    Rule(
        "poch", r"\b[Ee]poch\W{0,4}(?P<epochs_done>\d+)\s*(?:/|of)\s*(?P<epochs>\d+).*?\b[Ll]oss\w*\W{1,4}(?P<loss>NUM)"
    ),
    Rule("poch", r"\b[Ee]poch\W{0,4}(?P<epochs_done>\d+)\b.*?\b[Ll]oss\w*\W{1,6}(?P<loss>NUM)"),
    Rule("otal", r"\b[Tt]otal (?:[Ii]terations|steps)\W{1,3}(?P<total>[\d,]+)", "header"),
    sureness=0.15,
)

HF_DICT = format_of(
    "hf_dict",
    "Hugging Face Trainer",
    Rule("{'loss'", r"\{'loss': '?(?P<loss>NUM)'?,.*?'epoch': '?(?P<epochs_done>[\d.]+)"),
    Rule("'train_runtime'", r"\{'train_runtime': '?(?P<elapsed_seconds>NUM)", "end"),
    Rule("'eval_loss'", r"\{'eval_loss': ", "validation"),
    Rule("Num Epochs", r"Num Epochs = (?P<epochs>[\d,]+)", "header"),
    Rule("optimization steps", r"Total optimization steps = (?P<total>[\d,]+)", "header"),
    sureness=0.9,
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
    return format_of("pattern", "your pattern", Rule("", pattern))
