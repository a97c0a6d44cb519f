from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.errors import BadInput
from epochcast.measure.tables.detector_rows import FRAMEWORKS, detector_row, mean_shape
from epochcast.measure.tables.run_table import read_runs

FIXED, DRAWN = "3x800x<=1333 (default)", "3x(640..800)x<=1333 (multi-scale)"


FAST = "Fast R-CNN (with pre-computed proposals)"


@pytest.mark.parametrize(
    ("source", "model", "name"),
    [
        ("mmdetection_v1", "Faster R-CNN|R-50-FPN|caffe|1x", "faster_rcnn_r50_caffe_fpn_1x"),
        ("mmdetection_v1", "Cascade Mask R-CNN|X-101-64x4d-FPN|pytorch|20e", "cascade_mask_rcnn_x101-64x4d_fpn_20e"),
        ("mmdetection_v1", f"{FAST}|R-50-FPN|pytorch|Mask|2x", "fast_mask_rcnn_r50_fpn_2x"),
        ("mmdetection_v1", f"{FAST}|R-101-FPN|caffe|Faster|1x", "fast_rcnn_r101_caffe_fpn_1x"),
        ("mmdetection_v3", "retinanet_r50_fpn_1x_coco", "retinanet_r50_fpn_1x_coco"),
        ("maskrcnn_benchmark", "fast_rcnn_R-50-FPN", "faster_rcnn_R-50-FPN"),
    ],
)
def test_names_of_tables_become_names_of_configurations(source: str, model: str, name: str) -> None:
    assert detector_row(source, model, 2, FIXED).reference == f"{FRAMEWORKS[source]}:{name}"


def test_two_images_by_hand() -> None:
    """Three of four pairs have a 3:2 image: 3/2 − 1/24 = 35/24 of 800 is 1,167."""
    assert mean_shape([800], 1333, 2) == (3, 800, 1167)
    assert mean_shape([800], 1333, 1) == (3, 800, 1133)


def test_the_larger_of_two_draws_by_hand() -> None:
    """Of 640 and 800: 640 once, 800 three times of four."""
    assert mean_shape([640, 800], 9999, 2)[1] == 760


def test_memory_is_asked_at_the_largest_image() -> None:
    asked = detector_row("detectron2", "faster_rcnn_R_50_FPN_1x", 2, DRAWN)
    assert asked.largest_shape == (3, 800, 1333)
    assert asked.mean_shape == (3, 751, 1095)


@given(images=st.integers(1, 32), least=st.integers(20, 24))
def test_more_images_are_padded_to_no_less(images: int, least: int) -> None:
    sides = range(32 * least, 801, 32)
    assert mean_shape(sides, 1333, images)[1:] <= mean_shape(sides, 1333, images + 1)[1:] <= (800, 1333)


@pytest.mark.parametrize(
    ("model", "images"),
    [
        ("SSD|VGG16|300|caffe|120e", 8),
        ("Faster R-CNN|R-50-C4|caffe|2x", 1),
        ("RPN|R-50-C4|caffe|2x", 2),
        ("RPN|R-50-FPN|caffe|1x", 2),
    ],
)
def test_batches_that_tables_leave_out_are_known(model: str, images: int) -> None:
    assert detector_row("mmdetection_v1", model, 2.0, FIXED).images == images


def test_a_name_for_other_data_is_refused() -> None:
    with pytest.raises(BadInput, match="mask_rcnn_R_50_FPN: trained on Cityscapes, other sizes of images"):
        detector_row("detectron2", "mask_rcnn_R_50_FPN", 2, DRAWN)


def test_sizes_that_cannot_be_read_are_shown() -> None:
    with pytest.raises(BadInput, match="cannot read image sizes from '800'"):
        detector_row("detectron2", "rpn_R_50_FPN_1x", 2, "800")


def test_a_row_is_asked_with_the_pytorch_of_its_time() -> None:
    row: dict[str, Any] = {
        "source": "detectron2",
        "model": "faster_rcnn_R_50_FPN_1x",
        "device": "V100-SXM2-16GB",
        "gpus": 8,
        "batch_per_gpu": 2,
        "step_seconds": 0.21,
        "input_shape": DRAWN,
        "framework": "pytorch+detectron2",
        "framework_version": "2019-2020",
        "optimizer": "sgd",
    }
    runs, _ = read_runs([row])
    assert (runs[0].recipe.update_style, runs[0].recipe.optimizer, runs[0].recipe.batch) == ("loop", "momentum", 2)
    assert runs[0].input_shape == (3, 751, 1095)


def test_times_of_older_releases_are_refused_and_memory_is_not() -> None:
    row: dict[str, Any] = {
        "source": "mmdetection_v1",
        "model": "RPN|R-50-FPN|caffe|1x",
        "device": "V100-SXM2-16GB",
        "gpus": 8,
        "batch_per_gpu": 2,
        "step_seconds": 0.379,
        "peak_memory_bytes": 3.3e9,
        "memory_kind": "torch max_memory_allocated",
        "input_shape": FIXED,
        "framework": "pytorch+mmdetection",
        "framework_version": "v0.6.0",
    }
    assert "timed with older releases" in read_runs([row])[1][0].reason
    assert len(read_runs([row], with_memory=True)[0]) == 1
    assert len(read_runs([{**row, "framework_version": "v1.0rc1"}])[0]) == 1


@pytest.mark.needs_data
def test_most_timed_rows_of_zoos_can_be_asked(data: Path) -> None:
    table = pl.read_parquet(data / "runs.parquet").filter(pl.col("source").is_in(list(FRAMEWORKS)))
    runs, _ = read_runs(table.filter(pl.col("step_seconds").is_not_null()).to_dicts())
    assert len(runs) > 120
