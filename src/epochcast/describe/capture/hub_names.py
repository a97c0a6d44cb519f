"""Names under which a model is uploaded again: by another publisher, quantised, or as a version for chat.

unsloth/llama-3-8b-bnb-4bit       Llama 3 8B, whose weights are stored in NF4 with double quantisation
TheBloke/Llama-2-7B-GPTQ          Llama 2 7B in GPTQ's four bits
NousResearch/Meta-Llama-3-8B      Meta's, at another place
"""

import re
from collections.abc import Iterator

from epochcast.errors import UnknownModel

# What stands behind the name of a quantised upload, and the format of `quantize`.
_FORMATS = (
    (re.compile(r"[-_](?:unsloth[-_])?bnb[-_]4bit$", re.IGNORECASE), "nf4-dq"),
    (re.compile(r"[-_]bnb[-_]8bit$", re.IGNORECASE), "int8"),
    (re.compile(r"[-_]gptq(?:[-_](?:int4|4bit\S*))?$", re.IGNORECASE), "gptq"),
    (re.compile(r"[-_]awq(?:[-_](?:int4|4bit))?$", re.IGNORECASE), "awq"),
)
_VERSIONS = re.compile(r"[-_](?:instruct|chat|it|base|hf|bf16|fp16)$", re.IGNORECASE)


def stored_format(name: str) -> str:
    """How a model of this name is stored, as `quantize` has it; empty where its weights are not quantised."""
    return next((stored for pattern, stored in _FORMATS if pattern.search(name)), "")


def originals(name: str) -> Iterator[str]:
    """Names that an upload may be of, the likeliest first; only of names with a publisher, or of quantised ones."""
    plain = name
    for pattern, _ in _FORMATS:
        plain = pattern.sub("", plain)
    if plain == name and "/" not in name:
        return
    if plain != name:
        yield plain
    last = plain.rpartition("/")[2]
    yield last
    yield f"{last}-hf"
    shorter = _VERSIONS.sub("", last)
    while shorter != last:
        yield shorter
        yield f"{shorter}-hf"
        last, shorter = shorter, _VERSIONS.sub("", shorter)


def plain(name: str) -> str:
    """Small letters and digits; between two digits one underscore stays of what was there.

    >>> plain("ResNet-50"), plain("Llama-3.1-8B"), plain("llama3_1_8b")
    ('resnet50', 'llama3_1_8b', 'llama3_1_8b')
    """
    text = re.sub(r"[\W_]+", "_", name.casefold()).strip("_")
    return re.sub(r"(?<!\d)_|_(?!\d)", "", text)


class UnknownHubId(UnknownModel):
    """An id of the Hub that is not known without asking it."""

    def __str__(self) -> str:
        return (
            f"{super().__str__()}; for another one give hf:config.json (its config.json from the Hub, put here) or its "
            "sizes, such as decoder:layers=32,hidden=4096,heads=32,vocab=32000"
        )
