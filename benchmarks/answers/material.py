"""The files that questions are about, written into one folder: models in several formats, jobs, queues, tables, logs.

Everything is made here except logs, workloads and measurements: those are looked for beside the folder that
EPOCHCAST_DATA names, and questions about them are left out where they are missing.
"""

import csv
import gzip
import json
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import cycle, product
from pathlib import Path
from typing import Any

LOG_MODIFIED_AT = 1_763_370_000
# Each log is cut after one of these parts of its bytes, in turn.
LOG_PARTS = (0.3, 0.6, 1.0)
SLICE_ROWS = 40

# Measured tables, and the sources whose networks need no capture by torch where a table has many.
SLICES: Mapping[str, Sequence[str]] = {
    "runs": ("gavel", "nvidia_dle", "pollux_osdi21", "lambda", "mmdetection", "tf_benchmarks_2017"),
    "llm_runs": (),
    "transformer_runs": (),
    "ops": (),
    "layers_conv2d": (),
    "layers_dense": (),
    "report_runs": (),
}

TEXTS: Mapping[str, str] = {
    "small.toml": """
name = "small-resnet"
input = [3, 32, 32]
loss = "cross_entropy"
layers = [
  { name = "stem", type = "conv", channels = 16, kernel = 3, padding = 1, bias = false },
  { type = "batch_norm" },
  { type = "relu" },
  { name = "stage", type = "block", repeat = 3, layers = [
    { name = "conv1", type = "conv", channels = 16, kernel = 3, padding = 1 },
    { type = "relu" },
    { name = "conv2", type = "conv", channels = 16, kernel = 3, padding = 1 },
    { type = "add", from = ["conv2", "input"] },
  ] },
  { type = "global_average_pool" },
  { type = "flatten" },
  { name = "head", type = "linear", features = 10 },
]
""",
    "net.py": """
from torch import nn


def make() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
        self.embedding, self.layers = nn.Embedding(1000, 128), nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(128, 1000)

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens)))
""",
    "bert.json": json.dumps(
        {
            "model_type": "bert",
            "architectures": ["BertForMaskedLM"],
            "hidden_size": 256,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": 1024,
            "vocab_size": 5000,
        }
    ),
    "own_gpu.toml": """
name = "my RTX 4090"
like = "RTX 4090"
memory = "48 GiB"
bandwidth = "1200 GB/s"
fp16 = "200 TFLOPS"
""",
    "new_gpu.toml": """
name = "Imagined 1"
memory = "64 GiB"
bandwidth = "2000 GB/s"
compute_units = 100
clock = "1.9 GHz"
fp32 = "50 TFLOPS"
fp16 = "400 TFLOPS"
bf16 = "400 TFLOPS"
""",
    "deepspeed.json": json.dumps(
        {
            "train_micro_batch_size_per_gpu": 4,
            "gradient_accumulation_steps": 2,
            "bf16": {"enabled": True},
            "zero_optimization": {"stage": 2},
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
        }
    ),
    "lengths.txt": "".join(f"{20 + 37 * n % 490}\n" for n in range(400)),
    "epochcast.toml": """
[defaults]
device = "A100"
precision = "amp"

[[job]]
name = "imagenet"
model = "resnet50"
batch = 128
dataset = "imagenet-1k"
epochs = 90
gpus = 8

[[job]]
name = "finetune"
model = "bert_base_squad"
batch = 16
optimizer = "adamw"
samples = 88000
epochs = 2

[[job]]
name = "small"
model = "small.toml"
device = "T4"
batch = 256
samples = 50000
epochs = 5
loader_seconds = "1ms"
""",
    "queue.toml": """
nodes = 2
start_at = 2026-11-17T09:00:00Z

[[node_types]]
instance = "g5.xlarge"
quota = 1
boot_seconds = 240

[[node_types]]
name = "lab"
device = "RTX 3090"
gpus = 1
in_house = true
count = 1

[[jobs]]
id = "segment"
deadline = "6h"
tardiness_dollars_per_second = 0.002
run_seconds = { "RTX 3090" = { 1 = [30000, 34000, 41000] } }
running = { node_type = "lab", gpus = 1, done_fraction = 0.8 }
preemptible = false

[[jobs]]
id = "bert"
model = "bert-base"
samples = "1M"
epochs = 3
batch = 32
precision = "amp"
deadline = "9h"
tardiness_dollars_per_second = 0.005

[[jobs]]
id = "imagenet"
model = "resnet50"
dataset = "imagenet-1k"
epochs = 20
batch = 128
precision = "amp"
deadline = "today 20:00"
tardiness_dollars_per_second = 0.001
""",
}


@dataclass(frozen=True)
class Log:
    """A part of a real log: its name in the folder, the name of the question, and its steps where it does not say."""

    file: str
    name: str
    total_steps: int | None


def write_material(folder: Path) -> None:
    """Write every file that is made here."""
    for name, text in TEXTS.items():
        (folder / name).write_text(text.lstrip(), encoding="utf-8")
    (folder / "keras.json").write_text(json.dumps(_keras()), encoding="utf-8")
    with zipfile.ZipFile(folder / "archive.keras", "w") as archive:
        archive.writestr("config.json", json.dumps(_keras()))
        archive.writestr("metadata.json", json.dumps({"keras_version": "3.5.0"}))
    (folder / "workload.json").write_text(json.dumps(_workload()), encoding="utf-8")
    _write_table(folder / "jobs.csv", list(_past_jobs()))
    _write_table(
        folder / "new_jobs.csv", [_past_job(*job) for job in (("resnet50", "P100", 48, 1), ("vgg16", "T4", 16, 4))]
    )
    _write_table(
        folder / "measured.csv", [_measured(*row) for row in product(("resnet18", "resnet50"), (8, 16, 32, 64))]
    )
    _write_table(folder / "trace.csv", list(_trace()))
    (folder / "train.log").write_text("".join(_log_lines()), encoding="utf-8")
    os.utime(folder / "train.log", (LOG_MODIFIED_AT, LOG_MODIFIED_AT))


def beside_data(name: str) -> Path | None:
    """A folder beside that of the measurements, where there is one."""
    data = os.environ.get("EPOCHCAST_DATA")
    folder = Path(data).parent / name if data else None
    return folder if folder is not None and folder.is_dir() else None


def write_logs(folder: Path) -> list[Log]:
    """Real logs, cut after some of their bytes."""
    source = beside_data("logs")
    if source is None:
        return []
    logs = []
    with (source / "index.csv").open(encoding="utf-8") as index:
        for row, part in zip(csv.DictReader(index), cycle(LOG_PARTS), strict=False):
            content = gzip.decompress((source / row["file"]).read_bytes())
            total = None if row["announced_total"] else max(1, int(float(row["max_n"] or 1)))
            name = f"{row['id']}-{part:.0%}"
            file = f"logs/{name}/{row['file'].split('__')[1].removesuffix('.gz')}"
            path = folder / file
            path.parent.mkdir(parents=True)
            path.write_bytes(content[: int(part * len(content))])
            os.utime(path, (LOG_MODIFIED_AT, LOG_MODIFIED_AT))
            logs.append(Log(file, name, total))
    return logs


def write_slices(folder: Path) -> list[str]:
    """Small slices of measured tables, rows at equal distances; the names of the files."""
    data = os.environ.get("EPOCHCAST_DATA")
    if not data or find_spec("polars") is None:
        return []
    import polars as pl

    files = []
    for table, sources in SLICES.items():
        path = Path(data) / f"{table}.parquet"
        if path.exists():
            rows = pl.read_parquet(path)
            rows = rows.filter(pl.col("source").is_in(sources)) if sources else rows
            rows.gather_every(max(1, rows.height // SLICE_ROWS)).head(SLICE_ROWS).write_parquet(
                folder / f"{table}.parquet"
            )
            files.append(f"{table}.parquet")
    return files


def _keras() -> dict[str, Any]:
    def layer(kind: str, name: str, **config: object) -> dict[str, Any]:
        return {"class_name": kind, "config": {"name": name, **config}}

    layers = [
        layer("InputLayer", "input", batch_shape=[None, 28, 28, 1], dtype="float32"),
        layer("Conv2D", "conv", filters=32, kernel_size=[3, 3], strides=[1, 1], padding="valid", activation="relu"),
        layer("MaxPooling2D", "pool", pool_size=[2, 2], strides=[2, 2], padding="valid"),
        layer("Flatten", "flatten"),
        layer("Dense", "hidden", units=128, activation="relu"),
        layer("Dropout", "dropout", rate=0.5),
        layer("Dense", "head", units=10, activation="softmax"),
    ]
    return {"class_name": "Sequential", "config": {"name": "mnist", "layers": layers}}


def write_onnx(path: Path) -> None:
    """A small network as an ONNX file, where the package is installed."""
    if find_spec("onnx") is None:
        return
    import onnx
    from onnx import TensorProto, helper

    def weight(name: str, *shape: int) -> Any:
        count = 1
        for size in shape:
            count *= size
        return helper.make_tensor(name, TensorProto.FLOAT, shape, [0.01] * count)

    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c"], ["r"]),
            helper.make_node("GlobalAveragePool", ["r"], ["p"]),
            helper.make_node("Flatten", ["p"], ["f"]),
            helper.make_node("Gemm", ["f", "v", "b"], ["y"], transB=1),
        ],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 64, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 10])],
        [weight("w", 32, 3, 3, 3), weight("v", 10, 32), weight("b", 10)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), str(path))


def _write_table(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


_WORK = {"resnet18": 1.0, "resnet50": 2.2, "vgg16": 3.1}
_SPEED = {"V100": 1.0, "T4": 0.4, "P100": 0.6}


def _past_job(network: str, gpu: str, batch: int, gpus: int) -> dict[str, object]:
    return {"network": network, "gpu": gpu, "batch": batch, "num_gpus": gpus}


def _past_jobs() -> Iterator[dict[str, object]]:
    """Jobs with a regular step time and a deviation that repeats every seven rows."""
    everything = product(("resnet18", "resnet50"), ("V100", "T4"), (8, 16, 32, 64), (1, 2))
    for number, (network, gpu, batch, gpus) in enumerate(everything):
        step = _WORK[network] / _SPEED[gpu] * (batch + 4.0) * (1 + 0.1 * (gpus > 1)) * (1 + 0.02 * (number % 7 - 3))
        yield {**_past_job(network, gpu, batch, gpus), "step_ms": step}


def _measured(model: str, batch: int) -> dict[str, object]:
    return {"model": model, "device": "T4", "batch_per_gpu": batch, "step_seconds": 2e-3 * _WORK[model] * (batch + 4)}


def _workload() -> dict[str, Any]:
    """Twelve jobs of different length on two kinds of machines, submitted every twenty minutes."""
    types = [
        ("k80-1", "K80", 1, 0.9),
        ("k80-2", "K80", 2, 1.8),
        ("v100-1", "V100", 1, 3.06),
        ("v100-4", "V100", 4, 12.24),
    ]
    jobs = [
        {
            "id": f"job{n}",
            "submit_seconds": 1200.0 * n,
            "deadline_seconds": 1200.0 * n + 9000.0 + 700.0 * (n % 5),
            "tardiness_dollars_per_second": 0.001 * (1 + n % 3),
            "run_seconds": {
                "K80": {str(g): (9000.0 + 1500.0 * (n % 4)) / g**0.9 for g in (1, 2)},
                "V100": {str(g): (2500.0 + 400.0 * (n % 4)) / g**0.85 for g in (1, 4)},
            },
        }
        for n in range(12)
    ]
    keys = ("name", "device", "gpus", "dollars_per_hour")
    return {"nodes": 3, "node_types": [dict(zip(keys, row, strict=True)) for row in types], "jobs": jobs}


def _trace() -> Iterator[dict[str, object]]:
    for n in range(20):
        yield {"submit_seconds": 300 * n, "duration_seconds": 1800 + 977 * n % 4000, "gpus": 1 + n % 2}


def _log_lines() -> Iterator[str]:
    """A run of PyTorch's ImageNet example that becomes slower after a while."""
    for n in range(0, 2400, 10):
        epoch, batch = divmod(n, 800)
        seconds = 0.5 if n < 1800 else 0.65
        yield (
            f"Epoch: [{epoch}][{batch:4d}/800]\tTime  {seconds:.3f} ({seconds:.3f})\tData  0.010 ( 0.012)"
            f"\tLoss 6.9e+00 (7.0e+00)\tAcc@1   0.10 (  0.12)\n"
        )
