"""Phrases that were once printed and that readers stumbled over are nowhere: not in code, pages or templates."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXTS = {".py", ".md", ".html", ".js", ".toml", ".json"}
PLACES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
FOLDERS = [ROOT / "src", ROOT / "docs", ROOT / "examples"]

STUMBLED_OVER = (
    "answered by:",
    "device never measured",
    "was never measured by whole steps",
    "was never measured: its speed",
    "the data loader is left out",
    "left out, too narrow",
    "the seller names only",
    "What can be named",
    "When a running job ends",
    "with what comes back in it",
    "jobs go on",
    "so do we when it is back",
    "more than no time",
    "waiting for it grew",
    "By how much of its work",
    "what they keep along the tokens",
    "others go first",
    "goes on on",
    "a model above physics",
    "the scheduler leaves",
    "Do it, and keep doing it",
    "nine of ten",
    "nine in ten",
    "is told",
    "are told",
    "told and left out",
    "; today's.",
)
# A space may be the end of a line, and the next line may begin as a comment does.
PATTERNS = {
    phrase: re.compile(r"\s+(?:#\s+)?".join(map(re.escape, phrase.split())), re.IGNORECASE) for phrase in STUMBLED_OVER
}


def files() -> Iterator[Path]:
    yield from PLACES
    for folder in FOLDERS:
        yield from (path for path in sorted(folder.rglob("*")) if path.suffix in TEXTS)


def offences(text: str) -> Iterator[tuple[int, str]]:
    """(line, phrase); a phrase that is folded over two lines, perhaps of a comment, counts where it begins."""
    for phrase, pattern in PATTERNS.items():
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, phrase


def test_no_text_has_a_phrase_that_readers_stumbled_over() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {phrase}"
        for path in files()
        for line, phrase in sorted(offences(path.read_text(encoding="utf-8")))
    ]
    assert not found, "\n".join(found)


def test_a_phrase_is_found_over_two_lines_and_in_capitals() -> None:
    assert list(offences("a\n# fault Is\n    # told with its line")) == [(2, "is told")]
