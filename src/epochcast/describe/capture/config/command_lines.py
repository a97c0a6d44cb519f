"""Command lines that start a training, as shell scripts and argument files have them: read, never run.

    accelerate launch --num_processes 8 train_network.py --network_dim=16 --gradient_checkpointing
    torchrun --nproc_per_node 8 pretrain_gpt.py ${MODEL_ARGS[@]} --num-layers 32
    yolo detect train model=yolo11n.pt imgsz=640

Lines that end in a backslash go on in the next one. Variables that the script sets are put in, also those of arrays
(`ARGS=(…)`); one that is only known when it runs stays as it is, and its option says nothing. Options become a table:
`--num-layers 32` is `num_layers: 32`, an option without a value is true, and one with several has a list.
"""

import ast
import operator
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_CONTINUED = re.compile(r"\\\s*\n")
_SETS = re.compile(r"^(?:export\s+|local\s+|declare\s+(?:-\S+\s+)*)?([A-Za-z_]\w*)(\+?)=(.*)$", re.DOTALL)
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?:\[[@*]\])?(?::?-([^}]*))?\}|\$([A-Za-z_]\w*)")
_SUM = re.compile(r"\$\(\(([^`\n]{1,200}?)\)\)(?!\))|\$\(\s*expr\s+([^()`]*)\)")
"""$((32 / GPUS)) and $(expr 32 / $GPUS)."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_SIGNS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}
_MOST_OF_SUM = 10**15
_OPTION = re.compile(r"^--?[A-Za-z][\w.-]*")
_PAIR = re.compile(r"^[A-Za-z_][\w.]*=")
MOST_VALUES = 64
# Options of launchers, and what they say.
_LAUNCHERS: Mapping[str, Mapping[str, str]] = {
    "torchrun": {"nproc_per_node": "per_node", "nnodes": "nodes"},
    "torch.distributed.run": {"nproc_per_node": "per_node", "nnodes": "nodes"},
    "torch.distributed.launch": {"nproc_per_node": "per_node", "nnodes": "nodes"},
    "accelerate": {"num_processes": "gpus", "num_machines": "nodes", "config_file": "config"},
    "deepspeed": {"num_gpus": "per_node", "num_nodes": "nodes", "include": ""},
    "tune": {"nproc_per_node": "per_node", "nnodes": "nodes"},
    "mpirun": {"np": "gpus", "n": "gpus"},
    "srun": {"nodes": "nodes", "ntasks": "gpus"},
}
_VARIABLES_OF_LAUNCH = {"NPROC_PER_NODE": "per_node", "GPUS_PER_NODE": "per_node", "NNODES": "nodes"}
_SLURM = (
    (re.compile(r"^#SBATCH\s+(?:--nodes|-N)[=\s]+(\d+)", re.MULTILINE), "nodes"),
    (re.compile(r"^#SBATCH\s+--gpus-per-node[=\s]+(?:[\w-]+:)?(\d+)", re.MULTILINE), "per_node"),
    (re.compile(r"^#SBATCH\s+--gres[=\s]+gpu:(?:[\w-]+:)?(\d+)", re.MULTILINE), "per_node"),
)
_PLAIN_PROGRAMS = ("python", "python3", "env", "sudo", "time", "nohup", "exec", "bash", "sh", "launch", "run")


@dataclass
class CommandLine:
    """What is started (`program`, by its last name), how many GPUs and nodes, and the options as a table."""

    program: str = ""
    document: dict[str, Any] = field(default_factory=dict)
    launch: dict[str, str] = field(default_factory=dict)
    subcommand: str = ""
    files: list[str] = field(default_factory=list)
    """Files of settings among its words."""
    unread: list[str] = field(default_factory=list)
    """Options whose value is only known when the script runs."""

    @property
    def gpus(self) -> int | None:
        """GPUs of all nodes."""
        nodes = _count(self.launch.get("nodes")) or 1
        per_node = _count(self.launch.get("per_node"))
        return _count(self.launch.get("gpus")) or (per_node * nodes if per_node else None)

    @property
    def nodes(self) -> int | None:
        """Machines."""
        return _count(self.launch.get("nodes"))


def command_lines(text: str) -> list[CommandLine]:
    """The commands of a script that have options, the longest first."""
    variables: dict[str, list[str]] = {}
    batch_system = _batch_system(text)
    lines: list[CommandLine] = []
    for words in _commands(text):
        rest = _without_assignments(words, variables)
        expanded = [each for word in rest for each in _expanded(word, variables)]
        line = _command_line(expanded, variables)
        line.launch = {**batch_system, **line.launch}
        if line.document or line.files:
            lines.append(line)
    return sorted(lines, key=lambda line: -len(line.document))


def _batch_system(text: str) -> dict[str, str]:
    """Nodes and GPUs of each that Slurm is asked for: #SBATCH --nodes=2 --gpus-per-node=8."""
    asked = {name: value for pattern, name in _SLURM for value in pattern.findall(text)[-1:]}
    return {name: asked[name] for name in ("nodes", "per_node") if name in asked}


def environment(text: str) -> dict[str, Any]:
    """NAME=value, one a line, as SimpleTuner's config.env; options that one of them holds (…_ARGS) are read, too."""
    variables: dict[str, list[str]] = {}
    for words in _commands(text):
        _without_assignments(words, variables)
    line = CommandLine()
    for name, values in variables.items():
        if name.endswith("_ARGS"):
            _read_options(line, values)
        else:
            line.document[name] = _typed(values[:1]) if len(values) == 1 else " ".join(values)
    return line.document


def _commands(text: str) -> Iterator[list[str]]:
    """Words of each command; an array in brackets is one."""
    lines = _CONTINUED.sub(" ", text.replace("\r\n", "\n")).split("\n")
    waiting = ""
    for line in lines:
        waiting = f"{waiting} {_without_comment(line)}" if waiting else _without_comment(line)
        if waiting.count("(") > waiting.count(")") and len(waiting) < 100_000:
            continue
        try:
            words = shlex.split(_SUM.sub(_without_spaces, waiting))
        except ValueError:  # a quotation that goes on in the next line
            if len(waiting) < 100_000:
                continue
            words = []
        waiting = ""
        yield from _parted(words)


def _without_spaces(match: re.Match[str]) -> str:
    """A sum as one word: spaces change nothing in it."""
    return f"$(({''.join((match[1] or match[2]).split())}))"


def _without_comment(line: str) -> str:
    return re.sub(r"(^|\s)#.*$", "", line)


def _parted(words: Sequence[str]) -> Iterator[list[str]]:
    """One command after another: a; b && c | tee log."""
    part: list[str] = []
    for word in words:
        if word in ("&&", "||", "|", ";", "&", "then", "do") or word.startswith((">", "2>")):
            yield part
            part = []
        elif word.endswith(";"):
            yield [*part, word[:-1]]
            part = []
        else:
            part.append(word)
    yield part


def _without_assignments(words: Sequence[str], variables: dict[str, list[str]]) -> list[str]:
    """What is left behind NAME=value at the beginning, which are kept; an array goes on to its bracket."""
    rest = list(words)
    if rest[:1] == ["export"]:
        rest = rest[1:]
    while rest:
        match = _SETS.match(rest[0])
        if match is None:
            break
        name, is_added, first = match[1], match[2], match[3]
        values = [first]
        taken = 1
        if first.startswith("("):
            while not rest[taken - 1].endswith(")") and taken < len(rest):
                taken += 1
            values = [first[1:], *rest[1:taken]]
            values[-1] = values[-1].removesuffix(")")
        elif " " in first:
            values = first.split()
        values = [part for value in values for part in (value.split() if value.startswith("--") else (value,))]
        expanded = [each for value in values if value for each in _expanded(value, variables)]
        variables[name] = [*(variables.get(name, ()) if is_added else ()), *expanded][:2000]
        rest = rest[taken:]
    return rest


def _expanded(word: str, variables: Mapping[str, Sequence[str]]) -> list[str]:
    """A word with the variables in it; one that is nothing but a variable becomes its words."""
    whole = _VARIABLE.fullmatch(word)
    if whole is not None:
        name = whole[1] or whole[3]
        if name in variables:
            return list(variables[name])
        return [whole[2]] if whole[2] else [word]

    def value(match: re.Match[str]) -> str:
        values = variables.get(match[1] or match[3])
        return " ".join(values) if values is not None else match[2] or match[0]

    def sum_of(match: re.Match[str]) -> str:
        return _worked_out(match[1] or match[2], variables) or match[0]

    return [_VARIABLE.sub(value, _SUM.sub(sum_of, word))]


def _worked_out(text: str, variables: Mapping[str, Sequence[str]]) -> str:
    """A sum of whole numbers and variables: 32 / $GPUS; empty where it is anything else."""
    named = _VARIABLE.sub(lambda match: " ".join(variables.get(match[1] or match[3], (match[0],))), text)
    bare = _NAME.sub(lambda match: " ".join(variables.get(match[0], (match[0],))), named)
    try:
        return str(_whole(ast.parse(bare.replace("\\", "").strip(), mode="eval").body))
    except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, RecursionError):
        return ""


def _whole(expression: ast.expr) -> int:
    """+, -, *, / and % of whole numbers, as a shell has them."""
    match expression:
        case ast.Constant(value=int() as value) if abs(value) < _MOST_OF_SUM:
            return value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
            result = _SIGNS[type(op)](_whole(left), _whole(right))
            if abs(result) < _MOST_OF_SUM:
                return result
    raise ValueError(ast.dump(expression))


def _command_line(words: Sequence[str], variables: Mapping[str, Sequence[str]]) -> CommandLine:
    """A launcher with its options, then the program with its own."""
    line = CommandLine()
    words = [word for word in words if word != "-m"]  # before a module that is run
    rest = words[_behind_launchers(line, words) :]
    for variable, meaning in _VARIABLES_OF_LAUNCH.items():
        if variable in variables:
            line.launch.setdefault(meaning, " ".join(variables[variable]))
    _read_options(line, rest)
    return line


def _behind_launchers(line: CommandLine, words: Sequence[str]) -> int:
    """Where the options of the program begin."""
    launcher = ""
    place = 0
    while place < len(words):
        name = words[place].rpartition("/")[2]
        if name in _LAUNCHERS:
            launcher = line.program = name
        elif _OPTION.match(words[place]):
            if not launcher:
                break
            place = _launch_option(line, words, place, launcher)
        elif name not in _PLAIN_PROGRAMS:
            line.program = name
            return place + 1
        place += 1
    return place


def _launch_option(line: CommandLine, words: Sequence[str], place: int, launcher: str) -> int:
    """One option of a launcher; the place of its last word."""
    name, equals, value = words[place].lstrip("-").partition("=")
    name = name.replace("-", "_")
    has_next = place + 1 < len(words) and not words[place + 1].startswith("-")
    following = words[place + 1] if has_next else ""
    meaning = _LAUNCHERS[launcher].get(name)
    if not equals and has_next and not following.endswith(".py"):
        value, place = following, place + 1
    if meaning:
        line.launch[meaning] = value
    return place


def _read_options(line: CommandLine, words: Sequence[str]) -> None:
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if _OPTION.match(word) and not _is_number(word):
            name, equals, value = word.lstrip("-").partition("=")
            values = [value] if equals else []
            while not equals and place < len(words) and len(values) < MOST_VALUES and _is_value(words[place]):
                values.append(words[place])
                place += 1
            _set_option(line, name.replace("-", "_"), values)
        elif _PAIR.match(word):
            name, _, value = word.partition("=")
            _set_option(line, name, [value])
        elif word.endswith((".yaml", ".yml", ".json", ".toml")):
            line.files.append(word)
        elif not line.document and not line.subcommand:
            line.subcommand = word


def _set_option(line: CommandLine, name: str, values: Sequence[str]) -> None:
    line.document[name] = _typed(values)
    if line.document[name] is None and any("$" in value for value in values):
        line.unread.append(name)


def _is_value(word: str) -> bool:
    return not _OPTION.match(word) or _is_number(word)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _typed(values: Sequence[str]) -> Any:
    """True where there is no value, a number where it is one, a list of several; a variable without a value nothing."""
    if not values:
        return True
    if any("$" in value for value in values):
        return None
    typed = [_value(value) for value in values]
    return typed[0] if len(typed) == 1 else typed


def _value(text: str) -> Any:
    low = text.casefold()
    if low in ("true", "false"):
        return low == "true"
    if low in ("none", "null"):
        return None
    if re.fullmatch(r"-?\d{1,15}", text):
        return int(text)
    if re.fullmatch(r"-?(\d+\.\d*|\.\d+|\d+)(e-?\d{1,3})?", low):
        return float(text)
    if text.startswith("[") and text.endswith("]"):
        return [_value(each.strip()) for each in text[1:-1].split(",") if each.strip()]
    return text


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and 0 < int(text) < 10**7 else None
