"""Early stopping: when a run that waits for a better metric may end.

The rule of Keras, Lightning and the Hugging Face Trainer: after every evaluation the metric is held against the best so
far; `patience` evaluations without a better one end the run. What is to come is a walk over evaluations: a better one
with chance r sets the wait to nothing, any other adds one. r is how often the last 2·patience evaluations were better
(+1 of +2, Laplace), and falls as n/(n + j) with the j-th evaluation to come: in a series that has settled the n-th
value is the best so far with chance 1/n (Rényi 1962). Both are assumptions; no study measures this interval.

>>> rule = StoppingRule.parse("patience=2,metric=val_loss")
>>> watch = StoppingWatch(rule)
>>> for loss in (1.0, 0.8, 0.9):
...     watch.add(loss)
>>> watch.waited, watch.ends(evaluations_left=10)[0]
(1, 1)
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal, cast

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.observe.runs.standing import EarlyStopping

QUANTILES = (0.05, 0.5, 0.95)
# A walk over more evaluations than this is replaced by its end, the total.
MOST_EVALUATIONS = 10_000


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """When to stop: `patience` evaluations of `metric` in a row that are not better by more than `min_delta`."""

    patience: int
    metric: str = "val_loss"
    mode: Literal["min", "max"] = "min"
    min_delta: float = 0.0

    def __post_init__(self) -> None:
        if self.patience < 1:
            raise BadInput(f"patience must be at least 1, got {self.patience}")
        if not self.metric:
            raise BadInput("early stopping needs the name of a metric, such as metric=val_loss")
        if self.mode not in ("min", "max"):
            raise BadInput(f"the mode of early stopping is min or max, got {self.mode!r}")
        if not (isfinite(self.min_delta) and self.min_delta >= 0):
            raise BadInput(f"min_delta must be 0 or more, got {self.min_delta}")

    @classmethod
    def parse(cls, text: str) -> "StoppingRule":
        """`patience=3,metric=val_loss,mode=min,min_delta=0.001`; all but the patience may be left out."""
        settings: dict[str, Any] = {}
        for part in text.split(","):
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or name not in _READERS:
                raise BadInput(f"early stopping is written {_FORM}; {part.strip()!r} is not part of it")
            try:
                settings[name] = _READERS[name](value)
            except ValueError:
                raise BadInput(f"early stopping is written {_FORM}; {value!r} is no {name}") from None
        if "patience" not in settings:
            raise BadInput(f"early stopping is written {_FORM}; the patience is missing")
        return cls(**settings)

    def is_better(self, value: float, best: float) -> bool:
        """Whether a value beats the best so far."""
        return value < best - self.min_delta if self.mode == "min" else value > best + self.min_delta


_FORM = "patience=3,metric=val_loss,mode=min,min_delta=0"
_READERS: Mapping[str, Callable[[str], Any]] = {
    "patience": int,
    "metric": str,
    "mode": lambda value: cast(Literal["min", "max"], value),
    "min_delta": float,
}


@dataclass(slots=True)
class StoppingWatch:
    """What the metric did; `add` takes one evaluation."""

    rule: StoppingRule
    evaluations: int = 0
    waited: int = 0
    best: float | None = None
    _better: deque[bool] = field(default_factory=deque)

    def add(self, value: float) -> None:
        """One evaluation. What is not a number is not better."""
        self.evaluations += 1
        is_better = isfinite(value) and (self.best is None or self.rule.is_better(value, self.best))
        if is_better:
            self.best, self.waited = value, 0
        else:
            self.waited += 1
        self._better.append(is_better)
        if len(self._better) > 2 * self.rule.patience:
            self._better.popleft()

    @property
    def has_stopped(self) -> bool:
        """Whether the patience is at its end."""
        return self.waited >= self.rule.patience

    def ends(self, evaluations_left: int) -> tuple[int, int, int]:
        """Evaluations until the run ends, at 5, 50 and 95 %; never more than are left."""
        if self.has_stopped:
            return 0, 0, 0
        reached, wanted, quantiles = 0.0, list(QUANTILES), []
        left = min(evaluations_left, MOST_EVALUATIONS)
        waits = [0.0] * self.rule.patience
        waits[self.waited] = 1.0
        rate = (sum(self._better) + 1) / (len(self._better) + 2)
        for ahead in range(1, left + 1):
            better = rate * self.evaluations / (self.evaluations + ahead) if self.evaluations else rate
            reached += waits[-1] * (1 - better)
            waits = [better * sum(waits), *(wait * (1 - better) for wait in waits[:-1])]
            while wanted and reached >= wanted[0]:
                quantiles.append(ahead)
                wanted.pop(0)
            if not wanted:
                break
        low, middle, high = [*quantiles, *[evaluations_left] * len(wanted)]
        return low, middle, high

    def standing(self, stop_step: Interval | None) -> EarlyStopping:
        """What the metric did so far; `stop_step` is where the run may stop."""
        return EarlyStopping(
            metric=self.rule.metric,
            patience=self.rule.patience,
            evaluations=self.evaluations,
            best=self.best,
            waited=self.waited,
            has_stopped=self.has_stopped,
            stop_step=stop_step,
        )
