"""Tags of runs: short words, kept in one column of text with a line end before and after each.

>>> tags_text(("nlp", "prod"))
'\\nnlp\\nprod\\n'
>>> tags_of("\\nnlp\\nprod\\n")
('nlp', 'prod')
"""

from collections.abc import Iterable, Sequence

from epochcast.errors import BadInput

MOST_TAGS, LONGEST_TAG = 15, 60


def tags_text(tags: Sequence[str]) -> str | None:
    """As they are kept; None where there are none."""
    return "\n" + "".join(f"{tag}\n" for tag in tags) if tags else None


def tags_of(text: str | None) -> tuple[str, ...]:
    """Back."""
    return () if text is None else tuple(text.split("\n")[1:-1])


def checked_tags(tags: object) -> tuple[str, ...]:
    """Tags that somebody typed, each once, in order; refused where they are none."""
    if not isinstance(tags, Iterable) or isinstance(tags, str | bytes):
        raise BadInput('tags are a list of words, like ["nlp", "prod"]')
    checked: dict[str, None] = {}
    for tag in tags:
        if not isinstance(tag, str) or not tag.strip() or not tag.isprintable() or len(tag.strip()) > LONGEST_TAG:
            raise BadInput(f"a tag has 1 to {LONGEST_TAG} printable characters, got {str(tag)[:LONGEST_TAG]!r}")
        checked[tag.strip()] = None
    if len(checked) > MOST_TAGS:
        raise BadInput(f"a run has at most {MOST_TAGS} tags, got {len(checked)}")
    return tuple(sorted(checked, key=str.casefold))
