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
    "attention_modern",
    "cluster_jobs",
    "collectives_modern",
    "collectives_more",
    "colocated_pairs",
    "conv_amd",
    "device_specs_a",
    "device_specs_b",
    "gemm_modern",
    "inference_runs",
    "layers_conv2d",
    "layers_conv2d_tf2",
    "layers_dense",
    "llm_failed",
    "llm_runs",
    "memory_schedtune",
    "memory_timm_intervals",
    "model_ops",
    "moe_modern",
    "ops",
    "ops_training",
    "report_layer_benchmarks",
    "report_runs",
    "runs",
    "runs_more",
    "sustained_gemm",
    "transformer_runs",
)

# Names of `[refused]`: processors whose maker published no peak, a card that was not sold, graphics without memory.
REFUSED = {
    ("chsasank_device_benchmarks", "Apple M1 CPU"),
    ("chsasank_device_benchmarks", "Apple M1 Pro CPU 10-core"),
    ("chsasank_device_benchmarks", "Apple M2 CPU"),
    ("chsasank_device_benchmarks", "Apple M2 Ultra CPU"),
    ("chsasank_device_benchmarks", "Apple M4 Max CPU (16C,40C,128G)"),
    ("chsasank_device_benchmarks", "Nvidia 1060 Ti Mobile"),
    ("torchvision_gpu_bench_fork", "AMD Radeon 680M"),
    ("torchvision_gpu_bench_fork", "AMD Radeon 780M"),
}

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
    ("mlperf_training", "Habana Gaudi HL-205", None): "Gaudi",
    ("miopen", "Radeon Instinct MI25 (56 CU)", None): "MI25 (56 CU)",
    ("aiconfigurator", "RTX PRO 6000 Blackwell Server", None): "RTX PRO 6000 Blackwell Server",
    ("chsasank_device_benchmarks", "Nvidia 2070S", None): "RTX 2070 SUPER",
    ("mag_gpu_benchmark", "NVIDIA H100 SXM 96GB", None): "H100-SXM5-96GB",
    ("stas_ml_engineering", "NVIDIA GH200 SXM", None): "GH200-144GB",
    ("mlperf_training", "AMD Instinct MI300X 192GB HBM3", 192e9): "MI300X",
    ("mlperf_training", "AMD Instinct MI325X 256GB HBM3E DLC", 256e9): "MI325X",
    ("mlperf_training", "RTX Pro 6000 SE PCIe 96GB", None): "RTX PRO 6000 Blackwell Server",
    ("mlperf_training", "TPU-trillium", 32e9): "TPU v6e",
    ("torchvision_gpu_bench_fork", "AMD Radeon RX 5700", 8e9): "RX 5700",
    ("lambda", "RTX 2080 Super with Max-Q Design", 7.8e9): "RTX 2080 SUPER Max-Q",
    ("xhmy_torch_benchmark", "H200 MIG 7g.141gb", None): "H200",
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
    assert len(names) > 200
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
