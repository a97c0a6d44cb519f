"""Which process wrote a line, where launchers say so at its beginning.

`[rank1]:` (PyTorch), `[default1]:` (torchrun --tee), `[1,1]<stdout>:` (mpirun --tag-output), `1: ` before a date (srun
--label), `Rank 1:`. A bare number before anything else may be a step and is left alone.

>>> rank_of("[rank3]: step 10/100 loss 0.2"), rank_of("3: 2026-11-17 08:00:00 step 10/100"), rank_of("3: loss 0.2")
(3, 3, None)
"""

import re

_RANK = re.compile(
    r"""\[? (?:rank|Rank|RANK|default) [ :=_]* (?P<named>\d{1,5}) [\]:,| ]
    |   \[ \d+ , (?P<tagged>\d{1,5}) \] <std(?:out|err)>
    |   (?P<labelled>\d{1,5}) : \s+ \[? (?: \d{4}-\d\d-\d\d | [IWE]\d{4}\s )
    """,
    re.VERBOSE,
)
_FIRST_CHARACTERS = frozenset("[rRd0123456789")


def rank_of(line: str) -> int | None:
    """The rank in front of a line, None where there is none."""
    if line[:1] not in _FIRST_CHARACTERS:
        return None
    found = _RANK.match(line)
    return None if found is None else int(found[found.lastgroup or 0])
