from pathlib import Path

from epochcast.measure.bench.machine_fingerprint import last_cache_bytes, machine, processor_ticks, steal_fraction


def test_a_machine_is_known_again_and_threads_make_another() -> None:
    assert machine("cpu", 1).id == machine("cpu", 1).id
    assert machine("cpu", 1).id != machine("cpu", 2).id
    assert {"cpu", "cores", "system", "torch", "threads", "device", "clock_hertz"} <= set(machine("cpu", 1).facts)


def test_the_largest_cache_counts(tmp_path: Path) -> None:
    for index, size in enumerate(("32K", "512K", "32768K")):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(f"{size}\n")
    assert last_cache_bytes(tmp_path) == 32 * 2**20


# by hand: 60 of 1,000 ticks went to other guests
def test_stolen_time_by_hand(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 50 800 0 0 10 40 0 0\ncpu0 1 1\n")
    before = processor_ticks(stat)
    stat.write_text("cpu  540 0 100 1250 0 0 10 100 0 0\n")
    assert before == (40, 1000)
    assert steal_fraction(before, processor_ticks(stat)) == 0.06


def test_where_the_system_tells_nothing_nothing_is_claimed(tmp_path: Path) -> None:
    assert steal_fraction(processor_ticks(tmp_path / "none"), processor_ticks(tmp_path / "none")) is None
