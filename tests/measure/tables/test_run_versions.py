import pytest

from epochcast.measure.tables.run_versions import framework_version
from epochcast.predict.forecast.framework import framework_age


@pytest.mark.parametrize(
    ("source", "framework", "words", "version"),
    [
        ("", "pytorch", "1.12 cu113", (1, 12)),
        ("", "pytorch", "pytorch-1.8.0a0+52ea372", (1, 8)),
        ("", "pytorch", "torch 2.1.0 cu121 (eager attention)", (2, 1)),
        ("", "pytorch", "0.3", (0, 3)),
        ("", "pytorch (ngc)", "20.06-py3", (1, 6)),
        ("", "pytorch (ngc)", "pytorch-22.10-py3", (1, 13)),
        ("", "nanotron", "2025-02", (2, 7)),
        ("", "nemo/megatron", "dgxc v24.11.1", (2, 6)),
        ("", "tensorflow (ngc)", "20.06-tf1-py3", (1, 15)),
        ("", "tensorflow (ngc)", "19.08-py3", (1, 15)),
        ("", "tensorflow2 (ngc)", "21.02-py3", (2, 4)),
        ("mmdetection_v1", "pytorch+mmdetection", "v0.6.0", (0, 4)),
        ("mlperf_training", "pytorch", "v2.0", None),
        ("soumith", "torch", "2015-2016", None),
        ("", "pytorch", "1.x (2019-2020)", (1, 3)),
        ("", "pytorch", "2.x (2023)", (2, 1)),
        ("", "tensorflow", "1.x (2019-2020)", None),
        ("maskrcnn_benchmark", "pytorch", "1.0 (2018-2019)", (1, 0)),
        ("", "pytorch", "", None),
        ("kernelbench_level3", "pytorch", "", (2, 5)),
    ],
)
def test_versions_as_tables_write_them(
    source: str, framework: str, words: str, version: tuple[int, int] | None
) -> None:
    assert framework_version(source, framework, words) == version


def test_a_version_before_one_is_old_and_not_two() -> None:
    assert framework_age((0, 3)) == framework_age((0, 4)) == framework_age((1, 0)) == 0
    assert framework_age((2, 3)) == pytest.approx(16 / 22)
    assert framework_age((3, 0)) == framework_age((2, 9)) == 1
    ages = [framework_age(version) for version in ((0, 9), (1, 0), (1, 13), (2, 0), (2, 9), (3, 1))]
    assert ages == sorted(ages)
