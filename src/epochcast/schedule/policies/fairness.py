"""Max-min fairness over unlike machines, in the manner of Gavel (Narayanan et al. 2020).

    maximise  min_j Σ_c X_jc · speed_jc        speed_jc = fastest run of j / its run with c
    subject to Σ_c X_jc ≤ 1,  Σ_jc X_jc · g_c / G_d(c) ≤ nodes

X_jc is the share of time that job j should have choice c. It is played by deficit: who is furthest behind its share
goes first, with the choice it should have most.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from epochcast.errors import MissingExtra
from epochcast.schedule.free_gpus import FreeGpus
from epochcast.schedule.policies.ordered_policies import packable, staying
from epochcast.schedule.policies.state_arrays import IMPOSSIBLE_SECONDS, StateArrays, arrays_of
from epochcast.schedule.queue_state import Decision, GpuGrant, QueueState


@dataclass(frozen=True, slots=True)
class MaxMin:
    """The same share of its own fastest pace for everybody."""

    stops: bool = True
    resizes: bool = True

    def __call__(self, state: QueueState) -> Decision:
        """Furthest behind first."""
        arrays = arrays_of(state, not self.stops, self.resizes)
        shares = _shares(arrays)
        speed = _speed(arrays)
        fair = (shares * speed).sum(axis=1)
        jobs = list(state.live.values())
        done = np.array([1 - live.left for live in jobs])
        waited = np.array([state.seconds - live.job.submit_seconds for live in jobs])
        fastest = arrays.run_seconds.min(axis=1)
        behind = fair * waited / fastest - done
        decision = staying(state, self.stops)
        room = FreeGpus(state, decision)
        order = [row for row in np.argsort(-behind, kind="stable") if arrays.names[row] not in decision]
        for row in order:
            wanted = np.argsort(-(shares[row] + 1e-6 * speed[row]), kind="stable")
            for choice in wanted:
                if arrays.run_seconds[row, choice] < IMPOSSIBLE_SECONDS and room.take(arrays.choices[choice]):
                    decision[arrays.names[row]] = GpuGrant(arrays.choices[choice])
                    break
        return packable(state, decision, [arrays.names[row] for row in reversed(order)])


def _speed(arrays: StateArrays) -> npt.NDArray[np.float64]:
    """Of every choice, relative to the job's fastest; 0 where it cannot run."""
    possible = arrays.run_seconds < IMPOSSIBLE_SECONDS
    return np.where(possible, arrays.run_seconds.min(axis=1, keepdims=True) / arrays.run_seconds, 0.0)


def _shares(arrays: StateArrays) -> npt.NDArray[np.float64]:
    try:
        from scipy.optimize import linprog
        from scipy.sparse import csr_array, hstack, kron, vstack
        from scipy.sparse import eye as identity
    except ImportError:
        raise MissingExtra("schedule", "scipy") from None

    jobs, choices = arrays.run_seconds.shape
    speed = _speed(arrays)
    nodes_of = arrays.gpus / arrays.size[arrays.device]
    once = kron(identity(jobs), np.ones((1, choices)))
    rows = np.repeat(np.arange(jobs), choices)
    slower = csr_array((-speed.ravel(), (rows, np.arange(jobs * choices))), shape=(jobs, jobs * choices))
    capacity = csr_array(np.tile(nodes_of, jobs)[None, :])
    least = np.concatenate([np.zeros(jobs), np.ones(jobs), [0.0]])[:, None]
    solution = linprog(
        np.concatenate([np.full(jobs * choices, -1e-6), [-1.0]]),
        A_ub=hstack([vstack([once, slower, capacity]), csr_array(least)]).tocsr(),
        b_ub=np.concatenate([np.ones(jobs), np.zeros(jobs), [float(arrays.nodes)]]),
        bounds=[(0.0, 1.0)] * (jobs * choices) + [(0.0, 1.0)],
        method="highs",
    )
    shares: npt.NDArray[np.float64] = solution.x[:-1].reshape(jobs, choices)
    return shares
