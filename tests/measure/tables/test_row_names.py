"""Every word of other people's tables by the one list of aliases."""

import pytest

from epochcast.describe.graph.optimizer import OPTIMIZERS
from epochcast.describe.graph.precision import find_precision
from epochcast.errors import BadInput
from epochcast.measure.tables.row_names import (
    compiles,
    framework_strategy,
    is_good,
    is_per_gpu,
    is_trainer,
    listed,
    named_framework,
    named_optimizer,
    named_task,
    named_unit,
    row_names,
)
from epochcast.predict.forecast.job import FRAMEWORKS
from epochcast.predict.forecast.strategies.strategy_table import find_strategy


@pytest.mark.parametrize(
    ("words", "name", "is_fused"),
    [
        ("adam", "adam", False),
        ("AdamW", "adamw", False),
        ("bert_adam", "adamw", False),
        ("BertAdam", "adamw", False),
        ("fused adam", "adam", True),
        ("FusedAdam", "adam", True),
        ("adam (distributed)", "adam", False),
        ("adamw (fp32 master, fp32 gradient accumulation)", "adamw", False),
        ("adamw_torch_fused", "adamw", True),
        ("sgd_with_momentum", "momentum", False),
        ("nag", "nesterov", False),
        ("LAMB", "lamb", False),
        ("NVLAMB", "lamb", True),
        ("adamw_bnb_8bit", "adamw8bit", False),
        ("none", "none", False),
    ],
)
def test_an_optimizer_by_another_name_is_itself(words: str, name: str, is_fused: bool) -> None:
    found = named_optimizer(words)
    assert (found.name, found.is_fused, found.note) == (name, is_fused, None)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("lionw", "momentum"),
        ("THOR", "momentum"),
        ("distributed shampoo", "adam"),
        ("my_adamw_variant", "adamw"),
        ("zeitgeist", "adam"),
    ],
)
def test_an_unknown_optimizer_is_answered_as_the_nearest_and_says_so(words: str, name: str) -> None:
    found = named_optimizer(words)
    assert found.name == name
    assert found.note == f"the optimizer {words} is not known and answered as {name}"


@pytest.mark.parametrize(
    ("words", "framework"),
    [
        ("pytorch (nn.DataParallel)", "pytorch"),
        ("Horovod", "pytorch"),
        ("tensorflow2 (NGC)", "tensorflow"),
        ("tf2.0", "tensorflow"),
        ("TF 1.15", "tensorflow"),
        ("horovod + Keras", "tensorflow"),
        ("Megatron-DeepSpeed", "pytorch"),
        ("MXNet NVIDIA Release 21.05", "pytorch"),
        ("abacus", None),
    ],
)
def test_a_framework_is_found_in_its_description(words: str, framework: str | None) -> None:
    assert named_framework(words) == framework


@pytest.mark.parametrize(
    ("words", "strategy"),
    [
        ("pytorch (nn.DataParallel)", "data_parallel"),
        ("torch DistributedDataParallel", "ddp"),
        ("tensorflow + Horovod", "horovod"),
        ("tf.distribute.MirroredStrategy", "mirrored"),
        ("MultiWorkerMirroredStrategy", "multi_worker_mirrored"),
        ("PyTorch FSDP", "fsdp"),
        ("maxtext", "fsdp"),
        ("pytorch", None),
    ],
)
def test_a_framework_may_say_its_strategy(words: str, strategy: str | None) -> None:
    assert framework_strategy(words) == strategy


@pytest.mark.parametrize(
    ("words", "unit"),
    [
        ("images", "samples"),
        ("img/s", "samples"),
        ("sequences/sec", "samples"),
        ("Utterances", "samples"),
        ("tokens", "tokens"),
        ("tokens/s/GPU", "tokens"),
        ("samples per GPU per second", "samples"),
        ("tok/s", "tokens"),
        ("mel frames", "mel_frames"),
        ("it/s", "steps"),
        ("steps per second", "steps"),
    ],
)
def test_a_unit_says_what_is_counted(words: str, unit: str) -> None:
    assert named_unit(words) == unit


def test_a_rate_of_each_gpu_says_so() -> None:
    assert is_per_gpu("tokens/s/GPU") and is_per_gpu("samples per device per second") and not is_per_gpu("tokens/s")


def test_a_unit_that_is_none_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"the throughput counts furlongs; known: .*tokens"):
        named_unit("furlongs")


def test_tasks_qualities_trainers_and_compilers() -> None:
    assert [named_task(words) for words in ("question_answering", "GLUE", "mlm", "drug_discovery")] == [
        "answers",
        "classification",
        "masked",
        None,
    ]
    assert [is_good(words) for words in ("", "ok", "ok (batch not found)", "derived from logs")] == [True] * 4
    assert is_good("caution: variable length") and not is_good("caution: power-limited")
    assert not is_good("suspect: problem size changed") and not is_good("implausible: MFU below 0.5 %")
    assert is_trainer("fused_update", "Megatron-DeepSpeed") and not is_trainer("fused_update", "pytorch")
    assert compiles("MaxText") and not compiles("pytorch")


def test_every_alias_means_something_here() -> None:
    """A line of the list with a wrong value would refuse every row that uses it."""
    names = row_names()
    optimizers = [*names["optimizer"].values(), *names["nearest_optimizer"].values()]
    assert {name.removesuffix("_fused").removesuffix("_loop") for name in optimizers} <= set(OPTIMIZERS)
    assert set(names["framework"].values()) <= set(FRAMEWORKS)
    for name in {*names["precision"].values(), "amp_fp16"}:
        assert find_precision(name).name == name
    for name in {*names["strategy"].values(), *names["framework_strategy"].values()}:
        assert find_strategy(name, 4).name == name
    assert set(names["unit"].values()) == {"samples", "tokens", "mel_frames", "steps"}
    assert set(names["task_tokens"]) - {"source"} <= set(names["task"].values())


def test_keys_are_spelt_as_they_are_looked_for() -> None:
    """A key with a capital or a space could never be found."""
    for section in ("optimizer", "nearest_optimizer", "precision", "strategy", "unit", "task", "column"):
        for key, value in row_names()[section].items():
            assert listed(section, key) == value, key


def test_an_optimizer_of_ones_own_runs_a_kernel_per_step_and_tensor() -> None:
    own, usual = named_optimizer("adamw (own, unfused)"), named_optimizer("adamw (fp32 master)")
    assert (own.name, own.is_loop, own.is_fused) == ("adamw", True, False)
    assert (usual.name, usual.is_loop) == ("adamw", False)
