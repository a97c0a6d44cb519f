import pytest

from epochcast.errors import UnknownName
from epochcast.measure.tables.run_options import run_compiler, run_hook_seconds
from epochcast.measure.tables.run_placement import run_placement
from epochcast.measure.tables.run_table import read_runs

ROW = {"model": "resnet50", "device": "V100", "batch_per_gpu": 8, "step_seconds": 0.1}


@pytest.mark.parametrize(
    ("stated", "framework", "compiler"),
    [
        (None, "pytorch", "none"),
        (False, "pytorch", "none"),
        (float("nan"), "pytorch", "none"),
        (True, "pytorch", "inductor"),
        (True, "tensorflow", "xla"),
        ("true", "pytorch", "inductor"),
        ("reduce-overhead", "pytorch", "reduce-overhead"),
    ],
)
def test_the_column_compiled_says_whether_or_which(stated: object, framework: str, compiler: str) -> None:
    assert run_compiler({"compiled": stated}, framework) == compiler


def test_a_row_is_forecast_under_its_compiler_and_on_its_host() -> None:
    rows = [
        {**ROW, "compiled": True, "source": "kernelbench_level3", "system": "A100_modal"},
        {**ROW, "framework": "pytorch+adaptdl"},
        {**ROW, "compiled": "nvfuser"},
    ]
    (compiled, hooked), (failure,) = read_runs(rows)
    assert compiled.job.compile == "inductor"
    host = run_placement(compiled).host
    assert host is not None and host.name == "A100_modal"
    assert hooked.job.hook_seconds == run_hook_seconds({"framework": "pytorch+adaptdl"}) > 0
    assert run_placement(hooked).host is None
    assert "no compiler called 'nvfuser'" in failure.reason


def test_a_compiler_that_nobody_knows_is_a_reason() -> None:
    with pytest.raises(UnknownName):
        run_compiler({"compiled": "tvm"}, "pytorch")
