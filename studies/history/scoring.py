"""Models on the splits of one source.

The grey box is compared as `epochcast history compare` does it, intervals included. The hyper-parameters of peers are
chosen once for a source, by cross-validation on four fifths of its rows (what the first random part learns from). They
have seen rows that are tested on other splits, which can only help peers. Peers have no intervals here.
"""

from dataclasses import dataclass, field

import numpy as np

from epochcast.errors import EpochcastError
from epochcast.observe.history.history_compare import Tested, compare
from epochcast.observe.history.job_table import Array, Integers
from epochcast.observe.history.learning_set import LearningSet
from epochcast.observe.history.models.model_table import Options, find_kind
from epochcast.observe.history.splits import split_of
from epochcast.observe.history.tuning import one_thread_each, tuned
from studies.history.lines import Line

OURS = ("grey_box", "forecast")


@dataclass
class Scorer:
    """Of the rows of a source; hyper-parameters that were chosen are kept."""

    source: str
    known: LearningSet
    _chosen: dict[str, Options] = field(default_factory=dict)

    def line(self, split: str, model: str) -> Line:
        """The errors of a model on a split."""
        line = Line.of(self.source, split, len(self.known), model, self.tested(split, model))
        return line if model in OURS else line.without_intervals

    def tested(self, split: str, model: str) -> Tested:
        """What a model predicts of the rows of a split."""
        if model in OURS:
            return compare(self.known, splits=[split], models=[model]).splits[split].models[model]
        try:
            rows, predicted = self._predicted(split, model)
        except EpochcastError as error:
            nothing = np.zeros(0)
            return Tested(np.zeros(0, dtype=np.int64), nothing, nothing, nothing, nothing, str(error))
        return Tested(rows, self.known.target[rows], predicted, predicted, predicted)

    def _predicted(self, split: str, model: str) -> tuple[Integers, Array]:
        """The rows that are tested, and what a peer predicts for each."""
        kind, options, parts = find_kind(model), self._options(model), split_of(split, self.known.jobs).parts
        with one_thread_each():
            found = [
                kind.fit(self.known.take(train), options, 0).predict(self.known.take(test).inputs)
                for train, test in parts
            ]
        return np.concatenate([test for _, test in parts]), np.concatenate(found)

    def _options(self, model: str) -> Options:
        kind = find_kind(model)
        if len(kind.grid) == 1:
            return kind.grid[0]
        if model not in self._chosen:
            first = split_of("random", self.known.jobs).parts[0][0]
            self._chosen[model] = tuned(kind, self.known.take(first)).options
        return self._chosen[model]
