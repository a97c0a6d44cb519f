"""Where counters fall back among lines of one kind: a guess at where an epoch or an attempt began, without a parser.

>>> falls([b"epoch 1 step 8 loss 0.3", b"epoch 1 step 9 loss 0.2", b"epoch 2 step 1 loss 0.4", b"epoch 2 step 2 loss 0.3"])
[2]
"""

import re
from itertools import pairwise

_NUMBERS = re.compile(rb"\d+")

# Numbers of a line that are looked at; counters stand in front.
MOST_NUMBERS, MOST_BYTES = 12, 160

# A counter falls in fewer lines than this share; losses and times waver more.
MOST_FALLS = 0.4


def falls(lines: list[bytes]) -> list[int]:
    """Places at which the number that mostly rises falls; none where no number does so, or lines differ in shape."""
    rows = [tuple(map(int, _NUMBERS.findall(line, 0, MOST_BYTES)[:MOST_NUMBERS])) for line in lines]
    if len(set(map(len, rows))) != 1:
        return []
    best: tuple[int, list[int]] = (0, [])
    for column in zip(*rows, strict=True):
        fallen = [place for place, (one, other) in enumerate(pairwise(column), 1) if other < one]
        if fallen and len(fallen) <= MOST_FALLS * len(rows):
            risen = sum(other > one for one, other in pairwise(column))
            best = max(best, (risen, fallen), key=lambda found: found[0])
    return best[1]
