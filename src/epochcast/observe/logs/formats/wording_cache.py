"""Questions that digits do not decide, asked once per wording: the same words come again in every line of a log."""

import re
from collections.abc import Callable
from functools import lru_cache

_NO_DIGITS = {ord(digit): None for digit in "0123456789"}
MOST_WORDINGS = 2048
# Longer texts are hardly the same twice.
LONGEST_WORDING = 400


def remembered(pattern: str) -> Callable[[str], bool]:
    """Whether the pattern is found in a text without its digits; answers are kept for the next text of that wording."""
    compiled = re.compile(pattern)

    @lru_cache(MOST_WORDINGS)
    def fits(wording: str) -> bool:
        return compiled.search(wording) is not None

    def ask(text: str) -> bool:
        wording = text.translate(_NO_DIGITS)
        return fits(wording) if len(wording) <= LONGEST_WORDING else compiled.search(wording) is not None

    return ask
