"""The shipped table of measured public runs: figures with their sources, chosen by `python -m training.neighbours`.

A row has the columns of `epochcast evaluate`, and the size of its network as it was built: its parameters and the
flops of a training step per sample.
"""

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from epochcast.base.caching import remembered
from epochcast.measure.tables.row_errors import MissingCell

FILE = "public_runs.csv"
COLUMNS = (
    *("source", "system", "device", "device_memory_bytes", "gpus", "nodes", "interconnect", "framework"),
    *("framework_version", "model", "task", "input_shape", "batch_per_gpu", "grad_accum", "precision"),
    *("channels_last", "compiled", "optimizer", "mode", "data", "unit", "step_seconds", "note"),
    *("method", "recompute", "sequence_length", "global_batch", "micro_batch", "placement", "dp", "tp", "pp", "cp"),
    *("ep", "zero", "layers", "hidden", "heads", "kv_heads", "ffn", "vocab"),
    *("parameters", "flops_per_sample", "fed"),
)
SIZES = ("flops_per_sample", "fed")
"""What a row has besides the columns of a table of runs."""
SOURCES: Mapping[str, str] = {
    "timm": "github.com/huggingface/pytorch-image-models",
    "lambda": "github.com/lambdal/deeplearning-benchmark",
    "nvidia_dle": "github.com/NVIDIA/DeepLearningExamples",
    "pollux_osdi21": "github.com/petuum/adaptdl",
    "torchvision_gpu_bench": "github.com/ryujaehun/pytorch-gpu-benchmark",
    "gavel": "github.com/stanford-futuredata/gavel",
    "megatron_bridge": "github.com/NVIDIA-NeMo/Megatron-Bridge",
    "litgpt": "github.com/Lightning-AI/litgpt",
    "detectron2": "github.com/facebookresearch/detectron2",
    "mmdetection_v1": "github.com/open-mmlab/mmdetection",
    "llm_foundry": "github.com/mosaicml/llm-foundry",
    "mosaicml_diffusion": "github.com/mosaicml/diffusion",
    "zeus_nsdi23": "github.com/ml-energy/zeus",
    "jcjohnson": "github.com/jcjohnson/cnn-benchmarks",
    "soumith": "github.com/soumith/convnet-benchmarks",
    "dlperf": "github.com/Oneflow-Inc/DLPerf",
    "ffcv_imagenet": "github.com/libffcv/ffcv-imagenet",
    "insightface_arcface": "github.com/deepinsight/insightface",
    "peft_method_comparison": "github.com/huggingface/peft",
    "ms_swift": "github.com/modelscope/ms-swift",
    "torchtitan": "github.com/pytorch/torchtitan",
    "modded_nanogpt": "github.com/KellerJordan/modded-nanogpt",
    "fms_acceleration": "github.com/foundation-model-stack/fms-acceleration",
    "internevo": "github.com/InternLM/InternEvo",
    "xtuner": "github.com/InternLM/xtuner",
    "libai": "github.com/Oneflow-Inc/libai",
    "zyr17_24gb": "github.com/zyr17/gpu-benchmark",
    "aws_gpu_benchmark": "github.com/devos50/aws-gpu-benchmark",
    "simpletuner_sweep": "github.com/bghira/SimpleTuner",
    "modded_nanogpt_track3": "github.com/KellerJordan/modded-nanogpt",
}
"""Where the figures of a source were published."""
_THREAD = re.compile(r"([\w.-]+/[\w.-]+)(?:#(\d+)| \S.*)")


def address_of(source: str) -> str | None:
    """Where the figures of a source were published: a listed one, or a thread or file of a public repository that it
    names; None for others.
    """
    if source in SOURCES:
        return SOURCES[source]
    match = _THREAD.fullmatch(source)
    if match is None:
        return None
    return f"github.com/{match[1]}/issues/{match[2]}" if match[2] else f"github.com/{match[1]}"


@dataclass(frozen=True, slots=True)
class PublicRun:
    """One row: its cells, and the size of its network."""

    cells: Mapping[str, str]
    parameters: float
    flops_per_sample: float

    def __post_init__(self) -> None:
        if address_of(self.cells["source"]) is None:
            raise MissingCell("source")

    @property
    def values(self) -> Mapping[str, str]:
        """The cells that a table of runs has; empty ones are left out."""
        return {name: cell for name, cell in self.cells.items() if cell and name not in SIZES}

    @property
    def address(self) -> str:
        """Where its figure was published."""
        return address_of(self.cells["source"]) or ""

    def number(self, name: str) -> float | None:
        """A cell that is a number."""
        return float(self.cells[name]) if self.cells[name] else None


@remembered(1)
def public_runs() -> tuple[PublicRun, ...]:
    """All rows."""
    text = files("epochcast.measure.neighbours").joinpath(FILE).read_text(encoding="utf-8")
    return tuple(
        PublicRun(row, float(row["parameters"]), float(row["flops_per_sample"]))
        for row in csv.DictReader(text.splitlines())
    )
