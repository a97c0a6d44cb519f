"""Two sides by how they are asked for: two references, one at two revisions, or one against its lock.

BASE HEAD                   two models, or two jobs (job:NAME)
WHAT --base REV             a model or a job at a revision, and as it is in the working tree
WHAT --base REV --head REV  at two revisions
[job:NAME …] --lock         jobs as they were accepted, and as they are now
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from epochcast.decide.diff.at_revision import side_at
from epochcast.decide.diff.change_limits import ChangeLimits
from epochcast.decide.diff.diff_answer import Diff
from epochcast.decide.diff.diff_side import Side
from epochcast.decide.diff.forecast_lock import Lock
from epochcast.decide.diff.forecast_provenance import own_provenance
from epochcast.decide.diff.revisions import Repository
from epochcast.decide.diff.side_reference import JOB, DiffQuestion, side_for
from epochcast.errors import BadInput
from epochcast.predict.forecast.session import Session


@dataclass(frozen=True)
class DiffSession:
    """What the comparisons of one command share."""

    question: DiffQuestion
    allowed: ChangeLimits = field(default_factory=ChangeLimits)
    profile: Path | None = None
    session: Session | None = None

    @property
    def _session(self) -> Session:
        return self.session or Session(profile=self.profile)

    def of_two(self, base: str, head: str) -> Diff:
        """Two references."""
        session = self._session
        return Diff(side_for(base, self.question, session), side_for(head, self.question, session), self.allowed)

    def of_revisions(self, reference: str, base: str, head: str | None) -> Diff:
        """One reference at two revisions; without a head, in the working tree."""
        repository = Repository.around(Path.cwd())
        revisions = [repository.find(name) for name in (base, head) if name is not None]
        options: Mapping[str, Any] = {"profile": None if self.profile is None else str(self.profile.resolve())}
        before, *others = [side_at(repository, each, reference, self.question, options) for each in revisions]
        notes: tuple[str, ...] = ()
        if head is None:
            changed = repository.changed_files()
            state = f" with {changed} changed file{'s' * (changed > 1)}" if changed else ""
            others = [side_for(reference, self.question, self._session, f"{reference} in the working tree")]
            notes = (f"head is the working tree{state}",) if changed else ()
        return Diff(before, others[0], self.allowed, notes)

    def now(self, reference: str) -> Side:
        """A reference as it is in the working tree."""
        return side_for(reference, self.question, self._session)

    def of_lock(self, lock: Lock, path: Path, reference: str) -> Diff:
        """A job as it was accepted, and as it is now."""
        locked = lock.job(reference.removeprefix(JOB), path)
        base = replace(locked.side, name=f"{reference} in {path.name}")
        notes: tuple[str, ...] = ()
        if not locked.is_ours:
            notes = (
                f"{path.name} was written by {locked.provenance}, this is {own_provenance()}: the difference may be of "
                "epochcast and not of the job, so limits are not checked; renew it with --accept where the accepted "
                "code is",
            )
        head = replace(self.now(reference), name=f"{reference} now")
        return Diff(base, head, self.allowed, notes, is_comparable=locked.is_ours)


def check_reference(reference: str) -> str:
    """A reference that can be written into a lock: those of jobs."""
    if not reference.startswith(JOB):
        raise BadInput(f"a lock holds jobs of epochcast.toml: write job:NAME, got {reference!r}")
    return reference
