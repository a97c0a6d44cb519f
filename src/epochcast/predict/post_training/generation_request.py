"""Which engine runs where: what a job says of generation, settled with a device.

An engine's name is matched without case and punctuation. Engines refuse devices that they do not support, and formats
that the device has no kernels for run with the weights widened (`number_formats`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from epochcast.base.name_matching import plain
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.device import Device
from epochcast.predict.decode.number_formats import CACHE_FORMATS, FORMATS
from epochcast.predict.forecast.job import Job

NAMES: Mapping[str, str] = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "tensorrtllm": "TensorRT-LLM",
    "trtllm": "TensorRT-LLM",
    "hf": "HF generate",
    "hfgenerate": "HF generate",
    "transformers": "HF generate",
}
KNOWN = ("vllm", "sglang", "tensorrt-llm", "hf")


@dataclass(frozen=True, slots=True)
class EngineSupport:
    """Vendors an engine runs on, and generations of NVIDIA that are too old for it."""

    vendors: tuple[str, ...]
    too_old: tuple[str, ...]
    source: str


_OLD = ("fermi", "kepler", "maxwell", "pascal")
SUPPORT: Mapping[str, EngineSupport] = {
    "vLLM": EngineSupport(
        ("NVIDIA", "AMD", "Intel", "Google"), _OLD, "vLLM, installation: compute capability 7.0 or higher"
    ),
    "SGLang": EngineSupport(("NVIDIA", "AMD", "Intel"), (*_OLD, "volta"), "SGLang, install: sm75 and above"),
    "TensorRT-LLM": EngineSupport(
        ("NVIDIA",), (*_OLD, "volta", "turing"), "TensorRT-LLM, support matrix: Ampere and later"
    ),
    "HF generate": EngineSupport((), (), "Transformers runs wherever PyTorch does"),
}
_OF_PRECISION: Mapping[str, str] = {"fp32": "fp32", "tf32": "fp32", "fp32_strict": "fp32", "fp16": "fp16"}
_OF_PRECISION = {**_OF_PRECISION, "amp_fp16": "fp16", "fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}


class EngineNotSupported(BadInput):
    """An engine does not run on a device."""

    def __init__(self, engine: str, device: str, support: EngineSupport) -> None:
        super().__init__(f"{engine} does not run on {device} ({support.source}): use --engine hf")
        self.engine = engine
        self.device = device
        self.support = support


def engine_name(job: Job, device: Device) -> str:
    """The engine of a job, by its own name; raises where it does not run on the device."""
    name = NAMES.get(plain(job.engine))
    if name is None:
        raise UnknownName("engine", job.engine, KNOWN)
    support = SUPPORT[name]
    is_foreign = bool(support.vendors) and device.vendor not in support.vendors
    if device.kind == "cpu" or is_foreign or device.generation.casefold() in support.too_old:
        raise EngineNotSupported(name, device.name, support)
    return name


def formats_of(job: Job, device: Device) -> tuple[str, str]:
    """Formats of the weights and of the cache: the job's own, else those of its precision."""
    half = "bf16" if "bf16" in device.peak_flops_per_second else "fp16"
    weights = job.engine_weights or _OF_PRECISION.get(job.precision, half)
    if weights not in FORMATS:
        raise UnknownName("format of an engine's weights", weights, FORMATS)
    cache = job.engine_cache or ("fp16" if weights == "fp16" else half)
    if cache not in CACHE_FORMATS:
        raise UnknownName("format of the cache", cache, CACHE_FORMATS)
    return weights, cache
