"""Every device that occurs in the measurements has a meaning, or is refused on purpose."""

import os
from pathlib import Path

import pytest

from epochcast.errors import EpochcastError
from epochcast.hardware.catalogue import find_device

DATA = Path(os.environ.get("EPOCHCAST_DATA", "no such directory"))
pytestmark = [
    pytest.mark.needs_data,
    pytest.mark.skipif(not DATA.is_dir(), reason="EPOCHCAST_DATA names no directory with the measurements"),
]

# The tables that training and studies read; a table that joins them brings its devices along.
TABLES = (
    "allreduce",
    "cluster_jobs",
    "colocated_pairs",
    "inference_runs",
    "layers_conv2d",
    "layers_conv2d_tf2",
    "layers_dense",
    "memory_schedtune",
    "memory_timm_intervals",
    "ops",
    "report_layer_benchmarks",
    "report_runs",
    "runs",
    "transformer_runs",
)

# The maker never published the peak of the first Gaudi.
REFUSED = {("mlperf_training", "Habana Gaudi"), ("mlperf_training", "Habana Gaudi HL-205")}

# Where the source says more than the name.
MEANINGS = {
    ("jcjohnson", "TITAN X", 12e9): "TITAN X (Pascal)",
    ("jcjohnson", "GTX TITAN X", 12e9): "GTX TITAN X (Maxwell)",
    ("gavel", "V100-16GB", 16e9): "V100-SXM2-16GB",
    ("mlperf_training", "V100-32GB", 32e9): "V100-SXM2-32GB",
    ("mlperf_training", "TPU", None): "TPU v4",
    ("deepbench", "NVIDIA Tesla P100", None): "P100-PCIE-16GB",
    ("deepbench", "NVIDIA Tesla V100 (DGX-1)", None): "V100-SXM2-16GB",
    ("timm", "CPU i9-10940X", None): "Core i9-10940X",
}


def measured() -> set[tuple[str, str, float | None]]:
    """(source, device, memory) of every row that names a device."""
    polars = pytest.importorskip("polars", reason="reading the measurements needs polars")
    found = set()
    for file in (DATA / f"{name}.parquet" for name in TABLES):
        table = polars.scan_parquet(file)
        columns = table.collect_schema().names()
        name = next((column for column in ("device", "gpu", "worker_type") if column in columns), None)
        if name is None:
            continue
        wanted = [column for column in ("source", name, "device_memory_bytes") if column in columns]
        for row in table.select(wanted).unique().collect().iter_rows(named=True):
            found.add((row.get("source", file.stem), row[name], row.get("device_memory_bytes")))
    return found


def test_every_measured_device_is_known_or_refused_on_purpose() -> None:
    names = measured()
    assert len(names) > 60
    unknown = set()
    for source, name, memory_bytes in names:
        try:
            find_device(name, memory_bytes=memory_bytes, source=source)
        except EpochcastError:
            unknown.add((source, name))
    assert unknown == REFUSED & {(source, name) for source, name, _ in names}


@pytest.mark.parametrize(("source", "name", "memory_bytes"), MEANINGS)
def test_a_measured_name_means_what_its_source_meant(source: str, name: str, memory_bytes: float | None) -> None:
    assert find_device(name, memory_bytes=memory_bytes, source=source).name == MEANINGS[source, name, memory_bytes]
