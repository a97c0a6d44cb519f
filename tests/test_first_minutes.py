from benchmarks.first_minutes import offered_commands
from epochcast.surfaces.cli.guide import TRY, to_try


def test_the_benchmark_types_the_commands_that_the_demo_ends_with() -> None:
    assert list(offered_commands(f"a table\n    with a row\nTry:\n{to_try()}\n")) == [
        f"epochcast {each}" for _, each in TRY
    ]
