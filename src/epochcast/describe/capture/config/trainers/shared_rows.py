"""Rows and steps that several trainers share: fused kernels, weights in half, FSDP, data sets by name."""

from collections.abc import Iterable, Sequence
from math import prod

from epochcast.describe.capture.config.key_table import DATA, Row, is_set, positive, stated, states, when
from epochcast.describe.capture.config.offloads import set_fsdp_offload
from epochcast.describe.capture.config.setting import Reader
from epochcast.describe.datasets import find_dataset
from epochcast.errors import UnknownName

FROZEN = "these layers are trained whole, and forecast as frozen"
NOT_TIMED = "evaluations are not timed"
LIGER: Row = when("kernels", "liger")
UNSLOTH: Row = when("kernels", "unsloth")
DORA: Row = when("adapter", "dora")
AS_THE_MODEL = "the model is forecast without it"
SEQUENCES_WHOLE = "sequences are forecast whole on each GPU"


def set_halves(reader: Reader, half: str, key: str, *, is_loaded: bool, is_pure: bool = False) -> None:
    """Training in a half format (fp16 or bf16): under autocast, or all of it (`is_pure`). `is_loaded`: the trainer
    loads the weights in that format, too.
    """
    if is_pure:
        reader.set("precision", half, key)
        return
    reader.set("precision", f"amp_{half}", key)
    if is_loaded:
        reader.set("weights", half, key)


def read_fsdp(reader: Reader) -> None:
    """`fsdp` as a flag, words or a list, and the table `fsdp_config`, as transformers and axolotl have them."""
    prefix = "fsdp_config."
    table = {key.removeprefix(prefix).removeprefix("fsdp_"): key for key in reader.document if key.startswith(prefix)}
    reader.read_keys |= {"fsdp", "fsdp_version", *table.values()}
    value = reader.take("fsdp")
    if not table and not value:
        return
    words = [str(word) for word in value] if isinstance(value, list) else str(value or "").split()
    said = str(reader.document.get(table.get("sharding_strategy", ""), "")).casefold()
    resharded = reader.document.get(table.get("reshard_after_forward", ""), True)
    is_zero2 = "shard_grad_op" in (*words, said) or resharded is False
    strategy = "ddp" if "no_shard" in (*words, said) else "zero2" if is_zero2 else "fsdp"
    key = "fsdp" if value else "fsdp_config"
    if "hybrid" in said or any("hybrid" in word for word in words):
        gpus, nodes = stated(reader, "gpus"), stated(reader, "nodes")
        if gpus and nodes and gpus > nodes:
            strategy = f"{strategy}:{gpus // nodes}"
        else:
            reader.leave(key, "copies between nodes; give `strategy` such as fsdp:8")
    if not states(reader, "strategy"):
        reader.set("strategy", strategy, key)
    offloads = [table[name] for name in ("offload_params", "cpu_offload") if name in table]
    if "offload" in words or any(is_set(reader, name) for name in offloads):
        set_fsdp_offload(reader, strategy, key)
    if "activation_checkpointing" in table and is_set(reader, table["activation_checkpointing"]):
        reader.set("checkpointing", True, table["activation_checkpointing"])


def set_mesh(reader: Reader, sizes: Sequence[str]) -> None:
    """GPUs by the sides of a mesh (copies, shards, tensor parallel); one that is not given is not known, and says
    nothing.
    """
    given = [positive(reader, size) for size in sizes]
    count = prod(side for side in given if side)
    if count > 1 and not states(reader, "gpus"):
        reader.set("gpus", count, " × ".join(size for size, side in zip(sizes, given, strict=True) if side))


def set_dataset(reader: Reader, written: str, key: str) -> None:
    """A data set by its name in a hub or a trainer; one that is not in the catalogue says nothing of its size."""
    if not written:
        return
    if states(reader, DATA):
        reader.notes.append(f"{key}: only the first of several data sets is counted; give `samples`")
        return
    for name in _names_of(written):
        try:
            reader.set(DATA, find_dataset(name).name, key)
        except UnknownName:
            continue
        return
    reader.notes.append(f"{key}: the size of {written!r} is not known; give `samples`")


def _names_of(written: str) -> Iterable[str]:
    """tatsu-lab/alpaca, torchtune.datasets.alpaca_dataset: with and without where it is from."""
    yield written
    last = written.rpartition("/")[2].rpartition(".")[2]
    yield last
    yield last.removesuffix("_dataset")
