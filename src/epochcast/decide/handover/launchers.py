"""Commands that start the processes of a node themselves: torchrun, accelerate, deepspeed, composer, fabric.

A scheduler starts such a launcher once per node; a plain `python train.py` under Slurm once per GPU. Over several nodes
the launchers must find each other: each gets the number of nodes, the first node's address and, where it asks for it,
the rank of its own node. What the command says itself stays; numbers that contradict the forecast are refused. The
launcher is found by the command's words, not by its text.

The options are those of `torchrun --help`, `accelerate launch --help`, DeepSpeed's "Launching without passwordless
SSH", `composer --help` and `fabric run --help`.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO

from epochcast.errors import BadInput

PORT = 29500
"""PyTorch's own default."""

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SEPARATORS = ("&&", "||", ";", "|", "&")
# Words in front of a program that start it: `uv run torchrun …`.
_STARTERS = (("exec",), ("env",), ("time",), ("uv", "run"), ("poetry", "run"), ("pixi", "run"))
# What is started is a module: its own options follow.
_MODULES = ("-m", "--module", "--module_mode")
_PYTHON = re.compile(r"python(\d+(\.\d+)?)?")


@dataclass(frozen=True, slots=True)
class Nodes:
    """How a script of a scheduler writes the address of the first node, the rank of this one, the job's number, and
    the file that lists the nodes for DeepSpeed.
    """

    head: str
    rank: str
    job: str
    hostfile: str


@dataclass(frozen=True, slots=True)
class Launcher:
    """One launcher: the words that start it, and how it spells what a script must say.

    `per_node` and `in_all` are its names for the number of processes of a node and of all nodes, `nodes` for the number
    of nodes; the first name of each is written. `meeting` are the names by which a command arranges itself where nodes
    meet: of these, and of what a script would add, nothing is added then.
    """

    name: str
    starts: tuple[tuple[str, ...], ...]
    modules: tuple[str, ...] = ()
    per_node: tuple[str, ...] = ()
    in_all: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    meeting: tuple[str, ...] = ()
    rendezvous: tuple[str, ...] = ()
    """Options over several nodes, as templates."""
    needs_processes: bool = True
    """Whether it starts one process only where nothing is said; others take all GPUs they see."""
    needs_hostfile: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """A command with the launcher in it. `end` is where its own options begin in the text, `options` those it has."""

    command: str
    launcher: Launcher
    end: int
    options: Mapping[str, str]
    is_compound: bool

    def over(self, nodes: int, gpus_per_node: int, place: Nodes) -> str:
        """The command as it runs on every node."""
        self._check(nodes, gpus_per_node)
        launcher, added = self.launcher, list[str]()
        counts = (*launcher.per_node, *launcher.in_all)
        if counts and not self._has(counts) and (launcher.needs_processes or nodes > 1):
            amount = gpus_per_node if launcher.per_node else nodes * gpus_per_node
            added.append(f"{counts[0]}={amount}")
        if nodes > 1 and not self._has(launcher.meeting):
            if launcher.nodes and not self._has(launcher.nodes):
                added.append(f"{launcher.nodes[0]}={nodes}")
            values = {"head": place.head, "rank": place.rank, "job": place.job, "hostfile": place.hostfile}
            sizes = {"port": PORT, "world": nodes * gpus_per_node, "per_node": gpus_per_node}
            added += [option.format(**values, **sizes) for option in launcher.rendezvous]
        if not added:
            return self.command
        words = (self.command[: self.end].rstrip(), *added, self.command[self.end :].lstrip())
        return " ".join(word for word in words if word)

    def _check(self, nodes: int, gpus_per_node: int) -> None:
        """Refuse numbers that are not those of the forecast."""
        launcher = self.launcher
        wanted = (
            (launcher.per_node, gpus_per_node, "GPUs per node"),
            (launcher.in_all, nodes * gpus_per_node, "GPUs in all"),
            (launcher.nodes, nodes, "nodes"),
        )
        for names, amount, unit in wanted:
            for name in names:
                number = self.options.get(_folded(name), "")
                if number.isdecimal() and int(number) != amount:
                    raise BadInput(f"--run has {name}={number}, the forecast {amount} {unit}: make them the same")
        if nodes > 1 and "standalone" in self.options:
            raise BadInput(f"--run has --standalone, which is for one node; the forecast has {nodes}: leave it out")

    def _has(self, names: Iterable[str]) -> bool:
        return any(_folded(name) in self.options for name in names)


def launch_of(command: str) -> Launch | None:
    """The launcher of a command, None where it starts its program itself."""
    words = _words(command)
    begins = [0, *(place + 1 for place, (word, _) in enumerate(words) if word in _SEPARATORS or word.endswith(";"))]
    for begin in begins:
        part = words[begin:]
        plain = [word for word, _ in part]
        skipped = _before_program(plain)
        for launcher in LAUNCHERS:
            count = _start_of(launcher, plain[skipped:])
            if count:
                place = skipped + count - 1
                options = _options(plain[place + 1 :])
                return Launch(command, launcher, part[place][1], options, len(begins) > 1)
    return None


def _words(command: str) -> list[tuple[str, int]]:
    """The words as a shell splits them, each with the place in the text where it ends."""
    text = StringIO(command)
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[tuple[str, int]] = []
    try:
        while (word := lexer.get_token()) is not None:
            words.append((word, text.tell()))
    except ValueError as error:
        raise BadInput(f"--run {command!r} is no command of a shell: {error}") from None
    return words


def _before_program(words: Sequence[str]) -> int:
    """How many words stand before the program: assignments (OMP_NUM_THREADS=8) and what starts it."""
    place = 0
    while place < len(words):
        starter = next((each for each in _STARTERS if tuple(words[place : place + len(each)]) == each), None)
        if starter is not None:
            place += len(starter)
        elif _ASSIGNMENT.match(words[place]):
            place += 1
        else:
            break
    return place


def _start_of(launcher: Launcher, words: Sequence[str]) -> int:
    """How many words start this launcher; 0 where they start something else."""
    if not words:
        return 0
    program = words[0].rpartition("/")[2]
    for start in launcher.starts:
        if (program, *words[1 : len(start)]) == start:
            return len(start)
    if _PYTHON.fullmatch(program):
        flags = next((place for place, word in enumerate(words[1:], 1) if not word.startswith("-")), len(words))
        if words[flags - 1 : flags] == ["-m"] and words[flags : flags + 1] and words[flags] in launcher.modules:
            return flags + 1
    return 0


def _options(words: Sequence[str]) -> dict[str, str]:
    """The launcher's own options, up to the program that it starts, with their values.

    A word after an option is its value where it is no option and no script; that of a bare flag is then none of ours.
    """
    options: dict[str, str] = {}
    last: str | None = None
    for word in words:
        if word in _MODULES:
            break
        if word.startswith("-") and word != "--":
            name, _, value = word.partition("=")
            last = None if value else _folded(name)
            options[_folded(name)] = value
        elif last is not None and not word.endswith(".py"):
            options[last], last = word, None
        else:
            break
    return options


def _folded(option: str) -> str:
    """torchrun and accelerate take --nproc_per_node and --nproc-per-node."""
    return option.lstrip("-").replace("-", "_")


LAUNCHERS: tuple[Launcher, ...] = (
    Launcher(
        "torchrun",
        (("torchrun",),),
        ("torch.distributed.run", "torch.distributed.launch"),
        per_node=("--nproc_per_node",),
        nodes=("--nnodes",),
        meeting=("--rdzv_endpoint", "--master_addr"),
        rendezvous=("--rdzv_id={job}", "--rdzv_backend=c10d", "--rdzv_endpoint={head}:{port}"),
    ),
    Launcher(
        "accelerate",
        (("accelerate", "launch"), ("accelerate-launch",)),
        ("accelerate.commands.launch",),
        in_all=("--num_processes",),
        nodes=("--num_machines",),
        meeting=("--main_process_ip",),
        rendezvous=("--machine_rank={rank}", "--main_process_ip={head}", "--main_process_port={port}"),
        needs_processes=False,
    ),
    Launcher(
        "deepspeed",
        (("deepspeed",),),
        ("deepspeed.launcher.runner",),
        per_node=("--num_gpus",),
        nodes=("--num_nodes",),
        meeting=("--hostfile", "--launcher", "-H"),
        rendezvous=(
            "--hostfile={hostfile}",
            "--no_ssh",
            "--node_rank={rank}",
            "--master_addr={head}",
            "--master_port={port}",
        ),
        needs_processes=False,
        needs_hostfile=True,
    ),
    Launcher(
        "composer",
        (("composer",),),
        ("composer.cli.launcher",),
        per_node=("--nproc", "-n"),
        in_all=(),
        meeting=("--master_addr", "--world_size"),
        rendezvous=(
            "--world_size={world}",
            "--node_rank={rank}",
            "--base_rank=$(({rank} * {per_node}))",
            "--master_addr={head}",
            "--master_port={port}",
        ),
        needs_processes=False,
    ),
    Launcher(
        "fabric",
        (("fabric", "run"), ("lightning", "run", "model")),
        ("lightning.fabric.cli",),
        per_node=("--devices",),
        nodes=("--num-nodes",),
        meeting=("--main-address",),
        rendezvous=("--node-rank={rank}", "--main-address={head}", "--main-port={port}"),
    ),
)
