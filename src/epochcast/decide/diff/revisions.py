"""A git revision as files in a temporary folder, without touching the user's repository.

The revision is read into an index of its own and written out from there (`git read-tree`, `git checkout-index`), so the
working tree, index, stash, HEAD and the list of worktrees of the repository stay as they are, and no hook runs. A small
process removes the folder when whoever made it is done or has ended, however that was: it waits for the end of a pipe.

Files of git LFS stay pointers, and submodules are left out: nothing is downloaded.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from epochcast.errors import BadInput

_SWEEP = "import shutil, sys; sys.stdin.read(); shutil.rmtree(sys.argv[1], ignore_errors=True)"
PREFIX = "epochcast-diff-"


@dataclass(frozen=True, slots=True)
class Revision:
    """One commit: how it was asked for, and its full id."""

    name: str
    commit: str

    @property
    def short(self) -> str:
        """main (1a2b3c4), or the id alone where that was asked for."""
        return self.commit[:7] if self.commit.startswith(self.name) else f"{self.name} ({self.commit[:7]})"


@dataclass(frozen=True, slots=True)
class Repository:
    """The user's repository, by the top folder of its working tree."""

    root: Path

    @classmethod
    def around(cls, folder: Path) -> "Repository":
        """The one that a folder lies in."""
        ran = _git(folder, "rev-parse", "--show-toplevel")
        if ran.returncode:
            raise BadInput(f"{folder} is not in a git repository, so it has no revisions")
        return cls(Path(ran.stdout.strip()).resolve())

    def find(self, name: str) -> Revision:
        """The commit that a name means."""
        if not name.strip() or name.startswith("-"):
            raise BadInput(f"{name!r} is no git revision; give a branch, a tag or a commit")
        ran = _git(self.root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if ran.returncode:
            raise BadInput(
                f"no git revision {name!r} in {self.root}; in a shallow clone fetch it first: git fetch origin {name}"
            )
        return Revision(name, ran.stdout.strip())

    def changed_files(self) -> int:
        """Files of the working tree that differ from the last commit, new ones included."""
        ran = _git(self.root, "--no-optional-locks", "status", "--porcelain", "--untracked-files=normal")
        return len(ran.stdout.splitlines())

    @contextmanager
    def checked_out(self, revision: Revision) -> Iterator[Path]:
        """A folder with the files of a revision, for as long as the block lasts."""
        folder = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
        sweeper = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _SWEEP, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt of the terminal is not for it
        )
        try:
            tree = folder / "tree"
            tree.mkdir()
            self._write(revision, tree, folder / "index")
            yield tree
        finally:
            assert sweeper.stdin is not None
            sweeper.stdin.close()
            sweeper.wait()

    def _write(self, revision: Revision, tree: Path, index: Path) -> None:
        environment = {"GIT_INDEX_FILE": str(index), "GIT_LFS_SKIP_SMUDGE": "1"}
        plain = ("-c", "core.sparseCheckout=false", "-c", "core.splitIndex=false", "-c", "core.fsmonitor=false")
        for command in (("read-tree", revision.commit), ("checkout-index", "--all", "--quiet")):
            ran = _git(self.root, *plain, f"--work-tree={tree}", *command, **environment)
            if ran.returncode:
                reason = (ran.stderr.strip().splitlines() or ["git says nothing"])[-1]
                raise BadInput(f"revision {revision.short} cannot be checked out: {reason}")


# What a git hook sets for the commands that it starts: they would name another repository or index than the one asked.
_OF_HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY")


def _git(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name not in _OF_HOOKS}
    try:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments],
            env={**environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **environment},
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except FileNotFoundError:
        raise BadInput("git is not installed, which a comparison of revisions needs") from None
