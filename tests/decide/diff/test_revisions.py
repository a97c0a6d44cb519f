import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from epochcast.decide.diff.revisions import PREFIX, Repository
from epochcast.errors import BadInput

from .conftest import git, network


def state(folder: Path) -> tuple[object, ...]:
    """Everything of a repository that must stay: HEAD, index, working tree, stash, branches, worktrees."""
    told = [
        git(folder, *words.split()) for words in ("rev-parse HEAD", "status --porcelain", "stash list", "branch -a")
    ]
    listed = git(folder, "worktree", "list")
    return (
        *told,
        listed,
        (folder / ".git" / "index").read_bytes(),
        sorted(p.name for p in (folder / ".git").iterdir()),
    )


def test_a_revision_is_checked_out_elsewhere_and_nothing_of_the_users_is_touched(repository: Path) -> None:
    (repository / "net.toml").write_text(network(64))
    git(repository, "stash")
    (repository / "new.txt").write_text("untracked")
    git(repository, "add", "new.txt")
    before = state(repository)
    source = Repository.around(repository)
    with source.checked_out(source.find("main")) as tree:
        assert (tree / "net.toml").read_text() == network(32, 32)
        assert not tree.is_relative_to(repository)
        assert state(repository) == before
    assert not tree.exists()
    assert not tree.parent.exists()
    assert state(repository) == before


def test_hooks_do_not_run(repository: Path) -> None:
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {repository}/hooked\n")
    hook.chmod(0o755)
    source = Repository.around(repository)
    with source.checked_out(source.find("HEAD")):
        pass
    assert not (repository / "hooked").exists()


@pytest.mark.parametrize("name", ["nowhere", "", "--upload-pack=x", "main:net.toml"])
def test_a_revision_that_is_none_is_refused_in_one_line(repository: Path, name: str) -> None:
    with pytest.raises(BadInput, match="no git revision"):
        Repository.around(repository).find(name)


def test_outside_a_repository_there_is_no_revision(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is not in a git repository"):
        Repository.around(tmp_path)


HOLD = """
import sys, time
from pathlib import Path
from epochcast.decide.diff.revisions import Repository
source = Repository.around(Path.cwd())
with source.checked_out(source.find("HEAD")) as tree:
    print(tree.parent, flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_folder_goes_with_whoever_made_it_however_that_ended(
    repository: Path, how: signal.Signals, tmp_path: Path
) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    assert folder.name.startswith(PREFIX)
    assert folder.is_dir()
    process.send_signal(how)
    process.wait()
    process.stdout.close()
    for _ in range(200):  # the sweeper is another process
        if not folder.exists():
            break
        time.sleep(0.05)
    assert not folder.exists()
