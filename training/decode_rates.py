"""What devices and engines sustain while generating: writes `predict/decode/decode_rates.toml`.

Kernels are fitted device by device with medians and non-negative least squares of relative errors. Engines are fitted
to whole steps of `decode_runs` at a given number of sequences: what is left beside the kernels, per layer and per step.
`low` and `high` of an engine are the 5th and 95th percentile of forecast ÷ measured step, where each device was left
out of the kernel tables and of the engine's own fit.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from epochcast.base.caching import remembered
from epochcast.describe.capture.resolve import find_model
from epochcast.hardware.catalogue import find_device, find_link
from epochcast.hardware.device import Device
from epochcast.hardware.link import Link
from epochcast.measure.tables.table_files import read_table
from epochcast.predict.decode.continuous_batching import simulate, steady_tokens_per_second
from epochcast.predict.decode.decode_rates import FILE, DecodeRates, EngineRate, load_decode_rates
from epochcast.predict.decode.decode_step import decode_cost
from epochcast.predict.decode.decoder_shape import DecoderShape, decoder_shape
from epochcast.predict.decode.generation_memory import generation_memory, most_sequences
from training.decode_rows import HF, SGLANG, TRTLLM, VLLM, DecodeRow, decode_rows
from training.files import PACKAGE, data_folder, say, write

SMALL_BYTES, LARGE_BYTES, FEW_ROWS = 3e5, 16e6, 64
"""Weights below the first show the start of a kernel; weights above the second with few rows its bandwidth."""
LARGE_SIDE = 2048
"""Products of this side and more show the peak."""
SHORT_CACHE = 128
GEMM_FORMATS = {"bfloat16": ("bf16", 2.0), "fp8": ("fp8", 1.0), "int8_wo": ("int8", 1.0), "int4_wo": ("int4", 0.5)}
GEMM_FORMATS["nvfp4"] = ("fp4", 0.5625)
PEAK_OF = {"bf16": "bfloat16", "fp8": "fp8", "fp4": "nvfp4"}
MATH_OF = {"bf16": "bf16", "int8": "bf16", "int4": "bf16", "fp8": "fp8", "fp4": "fp4"}
CACHES = {"bfloat16": ("bf16", 2.0), "fp8": ("fp8", 1.0)}
HEAD = """\
# What devices and engines sustain while generating; `decode_rates.py` has the formulas. Written by
# `python -m training.decode_rates` from aiconfigurator (NVIDIA, Apache-2.0: kernels) and from published throughput of
# TensorRT-LLM, vLLM, SGLang and Transformers (NVIDIA/TensorRT-LLM, QwenLM/Qwen3, ROCm/vllm, sgl-project/sglang).
# `rows` were fitted, `error` is their mean relative error.
"""
KERNELS = "aiconfigurator"
# (sequences at once, part of the memory) and where it is written.
DEFAULTS: Mapping[str, tuple[int, float, bool, bool, str]] = {
    VLLM: (256, 0.9, True, False, "vLLM: max_num_seqs 256 and gpu_memory_utilization 0.9"),
    SGLANG: (256, 0.88, True, False, "SGLang: mem_fraction_static 0.88"),
    TRTLLM: (2048, 0.9, True, True, "TensorRT-LLM: max_batch_size 2048, free_gpu_memory_fraction 0.9"),
    HF: (10_000, 1.0, False, False, "Transformers: all sequences in one batch, padded, eager kernels"),
}
LEAST_ROWS = 5

Array = NDArray[np.float64]
Cells = dict[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class Fitted:
    """One row of the file: its table, its cells, and how well it holds."""

    table: str
    cells: "Cells"
    rows: int
    error: float
    source: str

    def text(self) -> str:
        """As TOML."""
        lines = [f"[[{self.table}]]"]
        for name, value in {**self.cells, "rows": self.rows, "error": self.error, "source": self.source}.items():
            lines.append(f"{name} = {_toml(value)}")
        return "\n".join(lines) + "\n"


def _toml(value: str | int | float | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value) if isinstance(value, int) else f"{value:.4g}"


def fitted_products(folder: Path) -> Iterator[Fitted]:
    """By device and format: the start, and what large and small products sustain."""
    table = read_table(folder / "decode_gemm_small_m.parquet")
    peaks = _peak_fractions(folder)
    for (name, written), rows in sorted(table.group_by("device", "dtype"), key=lambda each: each[0]):
        if written not in GEMM_FORMATS:
            continue
        device, (form, stored) = find_device(str(name)), GEMM_FORMATS[str(written)]
        m, n, k, seconds = (rows[column].to_numpy().astype(float) for column in ("m", "n", "k", "seconds"))
        weights, moved = n * k * stored, n * k * stored + 2 * m * (n + k)
        peak = peaks.get((device.name, form)) or peaks.get((device.name, "bf16")) or _middle_peak(peaks, form)
        start = float(np.median(seconds[weights < SMALL_BYTES]))
        large = (weights >= LARGE_BYTES) & (m <= FEW_ROWS)
        compute = 2 * m * n * k / (peak * device.peak(MATH_OF[form]))
        memory = np.sqrt(np.maximum((seconds - start) ** 2 - compute**2, 1e-14))
        fraction = float(np.median((moved / memory / device.memory_bytes_per_second)[large & (seconds > start)]))
        fraction = min(fraction, 1.0)
        forecast = start + np.hypot(moved / (fraction * device.memory_bytes_per_second), compute)
        error = float(np.mean(np.abs(forecast / seconds - 1)[weights >= LARGE_BYTES]))
        cells: Cells = {"name": device.name, "format": form, "start_seconds": start}
        cells |= {"bandwidth_fraction": fraction, "peak_fraction": peak}
        yield Fitted("product", cells, len(seconds), error, KERNELS)


def _peak_fractions(folder: Path) -> Mapping[tuple[str, str], float]:
    """Of large products, by device and format."""
    table = read_table(folder / "gemm_modern.parquet")
    found = {}
    for form, written in PEAK_OF.items():
        rows = table.filter((table["dtype"] == written) & (table["m"] >= LARGE_SIDE))
        rows = rows.filter((rows["n"] >= LARGE_SIDE) & (rows["k"] >= LARGE_SIDE))
        for (name,), own in rows.group_by("device"):
            device = find_device(str(name))
            fractions = own["flops"].to_numpy() / own["seconds"].to_numpy() / device.peak(MATH_OF[form])
            found[device.name, form] = min(1.0, float(np.median(fractions)))
    return found


def _middle_peak(peaks: Mapping[tuple[str, str], float], form: str) -> float:
    return float(np.median([value for (_, each), value in peaks.items() if each == MATH_OF[form]]))


def fitted_attentions(folder: Path) -> Iterator[Fitted]:
    """By device and format of the cache: s + n/fB, non-negative least squares of the relative error."""
    table = read_table(folder / "decode_attention.parquet")
    table = table.filter(~table["table_suspect"] & ~table["suspect"] & ~table["fits_l2"])
    table = table.filter((table["window_size"] == 0) & (table["kv_length"] >= SHORT_CACHE))
    for (name, written), rows in sorted(table.group_by("device", "kv_dtype"), key=lambda each: each[0]):
        device, (form, stored) = find_device(str(name)), CACHES[str(written)]
        cells = [rows[column].to_numpy().astype(float) for column in ("batch", "kv_heads", "head_dim", "kv_length")]
        read, seconds = 2 * stored * np.prod(cells, axis=0), rows["seconds"].to_numpy()
        start, per_byte = _line(read, seconds)
        fraction = min(1.0, 1 / per_byte / device.memory_bytes_per_second)
        error = float(np.mean(np.abs((start + read / fraction / device.memory_bytes_per_second) / seconds - 1)))
        fitted: Cells = {"name": device.name, "format": form, "start_seconds": start, "bandwidth_fraction": fraction}
        yield Fitted("attention", fitted, len(seconds), error, KERNELS)


def fitted_all_reduces(folder: Path) -> Iterator[Fitted]:
    """By device and GPUs, as they run inside a CUDA graph: s + n/b."""
    table = read_table(folder / "decode_allreduce.parquet")
    table = table.filter(table["mode"].is_in(["", "vllm_graph", "sglang_graph"]))
    for (name, gpus), rows in sorted(table.group_by("device", "gpus"), key=lambda each: each[0]):
        size, seconds = 2.0 * rows["message_elements"].to_numpy(), rows["seconds"].to_numpy()
        start, per_byte = _line(size, seconds)
        error = float(np.mean(np.abs((start + per_byte * size) / seconds - 1)))
        cells: Cells = {"name": find_device(str(name)).name, "gpus": int(str(gpus))}
        cells |= {"start_seconds": start, "bytes_per_second": 1 / per_byte}
        yield Fitted("all_reduce", cells, len(seconds), error, KERNELS)


def _line(size: Array, seconds: Array) -> tuple[float, float]:
    """(start, per byte) of the least relative error."""
    columns = np.stack([np.ones_like(size), size], axis=1) / seconds[:, None]
    (start, per_byte), _ = nnls(columns, np.ones_like(seconds))
    return float(start), float(per_byte)


# ---- engines -------------------------------------------------------------------------------------


@remembered(256)
def shape_of(reference: str) -> DecoderShape:
    """The decoder of a row."""
    return decoder_shape(find_model(reference, (256,)).graph(1))


def row_link(device: Device) -> Link:
    """What joins the GPUs of a box."""
    return find_link(device.interconnect)


def forecast_tokens_per_second(row: DecodeRow, rates: DecodeRates) -> float:
    """The throughput of a row, as `forecast --mode generate` gives it."""
    engine, device = rates.engine(row.engine), find_device(row.device)
    formats = row.weights, row.cache
    cost = decode_cost(shape_of(row.reference), device, row_link(device), row.gpus, formats, engine, rates)
    tokens = row.prompt + row.response
    slots = most_sequences(cost, tokens, row.prompt, row.sequences or engine.most_sequences, engine.memory_fraction)
    slots = max(1, slots)
    if row.is_stream:
        return steady_tokens_per_second(cost, row.prompt, row.response, slots)
    return simulate(cost, row.prompt, [row.response] * (row.sequences or slots), slots).tokens_per_second


def fitted_engine(name: str, rows: Sequence[DecodeRow], rates: DecodeRates) -> EngineRate:
    """Layer and step seconds: what is left of measured seconds per step beside the kernels."""
    most, fraction, is_batching, of_free, _ = DEFAULTS[name]
    bare = EngineRate(name, 0.0, 0.0, most, fraction, is_batching, of_free, 1.0, 1.0)
    left, layers, measured = [], [], []
    for row in rows:
        if row.engine != name or (row.is_stream and row.sequences is None):
            continue
        kernels = forecast_tokens_per_second(row, replace(rates, engines={name: bare}))
        sequences = row.sequences or 1
        seconds = sequences / row.tokens_per_second
        left.append(seconds - sequences / kernels)
        layers.append(shape_of(row.reference).layers)
        measured.append(seconds)
    weight = 1 / np.array(measured)
    columns = np.stack([np.array(layers, dtype=float), np.ones(len(layers))], axis=1) * weight[:, None]
    (per_layer, per_step), _ = nnls(columns, np.maximum(np.array(left), 0) * weight)
    return replace(bare, layer_seconds=float(per_layer), step_seconds=float(per_step))


def left_out_ratios(rows: Sequence[DecodeRow], rates: DecodeRates) -> list[tuple[DecodeRow, float]]:
    """Forecast ÷ measured throughput of every row, each device left out of kernels and engines."""
    ratios = []
    for device in sorted({row.device for row in rows}):
        kept = [row for row in rows if row.device != device]
        without = rates.without(find_device(device).name)
        engines = {
            name: fitted_engine(name, own, without)
            for name in DEFAULTS
            if len(own := _of_engine(kept, name)) >= LEAST_ROWS
        }
        without = replace(without, engines={**rates.engines, **engines})
        for row in rows:
            if row.device == device and row.engine in without.engines:
                ratios.append((row, forecast_tokens_per_second(row, without) / row.tokens_per_second))
    return ratios


def _of_engine(rows: Sequence[DecodeRow], name: str) -> list[DecodeRow]:
    return [row for row in rows if row.engine == name and not (row.is_stream and row.sequences is None)]


EXPERT_FACTORS = tuple(float(x) for x in np.geomspace(0.7, 8.0, 40))
LEAST_EXPERT_ROWS = 6


def fitted_experts(rows: Sequence[DecodeRow], rates: DecodeRates) -> Iterator[Fitted]:
    """By format: the factor on products of experts with which half of the rows of mixtures are forecast too fast."""
    by_format: dict[str, list[DecodeRow]] = defaultdict(list)
    for row in rows:
        if any(each.experts > 1 for each in shape_of(row.reference).products):
            by_format["bf16" if row.weights == "fp16" else row.weights].append(row)
    for form, own in sorted(by_format.items()):
        if len(own) < LEAST_EXPERT_ROWS:
            continue
        ratios = {}
        for factor in EXPERT_FACTORS:
            changed = replace(rates, experts={**rates.experts, form: factor})
            ratios[factor] = np.array([forecast_tokens_per_second(row, changed) / row.tokens_per_second for row in own])
        best = min(ratios, key=lambda factor: abs(float(np.median(np.log(ratios[factor])))))
        error = float(np.mean(np.abs(ratios[best] - 1)))
        yield Fitted("experts", {"format": form, "factor": best}, len(own), error, "decode_runs: mixtures of experts")


def engines_text(rows: Sequence[DecodeRow], rates: DecodeRates) -> Iterator[Fitted]:
    """The engines with the spread on devices that were left out."""
    ratios = left_out_ratios(rows, rates)
    for name, engine in rates.engines.items():
        own = np.array([ratio for row, ratio in ratios if row.engine == name])
        low, high = float(min(1.0, np.quantile(own, 0.05))), float(max(1.0, np.quantile(own, 0.95)))
        cells: Cells = {
            "name": name,
            "layer_seconds": engine.layer_seconds,
            "step_seconds": engine.step_seconds,
            "most_sequences": engine.most_sequences,
            "memory_fraction": engine.memory_fraction,
            "is_batching": engine.is_batching,
            "of_free": engine.of_free,
            "low": low,
            "high": high,
        }
        error = float(np.mean(np.abs(own - 1)))
        yield Fitted("engine", cells, len(own), error, f"decode_runs, devices left out; {DEFAULTS[name][4]}")


def memory_ratios(rows: Sequence[DecodeRow], rates: DecodeRates) -> list[tuple[DecodeRow, float]]:
    """Forecast ÷ measured memory that PyTorch allocated, of rows that say it. Transformers before 4.45 kept the scores
    of the whole prompt in float32; those rows (Qwen2) are left out.
    """
    ratios = []
    for row in rows:
        if row.memory_bytes is None or row.model.startswith("Qwen2-"):
            continue
        engine, device = rates.engine(row.engine), find_device(row.device)
        formats = row.weights, row.cache
        cost = decode_cost(shape_of(row.reference), device, row_link(device), row.gpus, formats, engine, rates)
        tokens = row.prompt + row.response
        memory = generation_memory(cost, row.sequences or 1, tokens, row.prompt, engine, engine.memory_fraction)
        ratios.append((row, (memory.needed_bytes - memory.context_bytes) / row.memory_bytes))
    return ratios


def memory_text(rows: Sequence[DecodeRow], rates: DecodeRates) -> Fitted:
    """The spread of memory."""
    ratios = np.array([ratio for _, ratio in memory_ratios(rows, rates)])
    low, high = float(np.quantile(1 / ratios, 0.05)), float(np.quantile(1 / ratios, 0.95))
    cells: Cells = {"low": min(1.0, low), "high": max(1.0, high)}
    error = float(np.mean(np.abs(ratios - 1)))
    return Fitted("memory", cells, len(ratios), error, "QwenLM/Qwen3: memory of Transformers on A100 and H20")


def fitted_rates(folder: Path, rows: Sequence[DecodeRow]) -> tuple[list[Fitted], DecodeRates]:
    """Kernels first; engines and experts in turn, until both have seen the other."""
    kernels = [*fitted_products(folder), *fitted_attentions(folder), *fitted_all_reduces(folder)]
    rates = load_decode_rates("\n".join(each.text() for each in kernels))
    experts: list[Fitted] = []
    for _ in range(2):
        rates = replace(rates, engines={name: fitted_engine(name, rows, rates) for name in DEFAULTS})
        experts = list(fitted_experts(rows, rates))
        factors = {str(each.cells["format"]): float(each.cells["factor"]) for each in experts}
        rates = replace(rates, experts=factors)
    return [*kernels, *experts], rates


def written(folder: Path) -> tuple[str, Counter[str]]:
    """The file from the measurements in a folder, and how many rows were left out, by reason."""
    left_out: Counter[str] = Counter()
    rows = list(decode_rows(folder, left_out))
    fitted, rates = fitted_rates(folder, rows)
    texts = [HEAD, *(each.text() for each in [*fitted, *engines_text(rows, rates), memory_text(rows, rates)])]
    return "\n".join(texts), left_out


def main() -> None:
    """Write the file; say what was left out."""
    text, left_out = written(data_folder())
    for reason, count in left_out.most_common():
        say(f"left out: {count} rows: {reason}")
    write(PACKAGE / "predict" / "decode" / FILE, text.encode())


if __name__ == "__main__":
    main()
