"""No silent regression: the MAPE of every group is committed, and a run that is more than a point worse fails."""

import json
from collections.abc import Iterable
from pathlib import Path

from studies.accuracy.figures import Figure

SCORES = Path(__file__).with_name("scores.json")
MOST_WORSE = 0.01
# The mean of fewer rows moves by more than a point when the model is merely trained again.
FEWEST_ROWS = 10

Scores = dict[str, dict[str, float]]


def scores_of(figures: Iterable[Figure]) -> Scores:
    """MAPE by split and group, where there are enough rows."""
    scores: Scores = {}
    for figure in sorted(figures, key=lambda f: (f.split, f.group)):
        if figure.mape is not None and figure.n >= FEWEST_ROWS:
            scores.setdefault(figure.split, {})[figure.group] = round(figure.mape, 4)
    return scores


def read_scores(path: Path = SCORES) -> Scores:
    """The committed scores; empty where none were accepted yet."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_scores(new_scores: Scores, path: Path = SCORES) -> None:
    """Accept these scores; later runs are compared with them."""
    path.write_text(json.dumps(new_scores, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def regressions(new_scores: Scores, accepted: Scores) -> list[str]:
    """One line for every group that is more than a point worse than accepted, or gone."""
    lines = []
    for split, groups in accepted.items():
        for group, old in groups.items():
            new = new_scores.get(split, {}).get(group)
            if new is None:
                lines.append(f"{split}: {group}: no longer scored (was {old:.1%})")
            elif new > old + MOST_WORSE:
                lines.append(f"{split}: {group}: MAPE {new:.1%}, was {old:.1%}")
    return lines
