"""Traces of torch.profiler: one made here on the CPU, and a small one written by hand as a GPU gives it."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from epochcast.errors import BadInput
from epochcast.observe.check.kineto_trace import is_trace, observed_trace

MILLISECOND = 1000.0


def event(name: str, cat: str, begin: float, length: float) -> dict[str, Any]:
    return {"ph": "X", "name": name, "cat": cat, "ts": begin * MILLISECOND, "dur": length * MILLISECOND}


def trace_of(events: list[dict[str, Any]], device: str | None = "NVIDIA A100-SXM4-40GB") -> dict[str, Any]:
    return {"deviceProperties": [{"id": 0, "name": device}] if device else [], "traceEvents": events}


def step(number: int) -> list[dict[str, Any]]:
    """100 ms: 20 of data, 40 of a float32 product, 10 of a tensor-core one beside 5 of NCCL, 15 waited for the GPU."""
    begin = 100.0 * number
    return [
        event(f"ProfilerStep#{number}", "user_annotation", begin, 100),
        event(f"ProfilerStep#{number}", "gpu_user_annotation", begin + 20, 80),
        event("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "user_annotation", begin, 20),
        event("ampere_sgemm_128x64_tn", "kernel", begin + 20, 40),
        event("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_nn", "kernel", begin + 60, 10),
        event("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "kernel", begin + 65, 10),
        event("cudaStreamSynchronize", "cuda_runtime", begin + 60, 15),
    ]


def written(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


# by hand, as the docstring of `step` says; NCCL's last 5 ms run alone, so that kernels run 20 … 75
def test_the_parts_of_a_step_by_hand(tmp_path: Path) -> None:
    path = written(tmp_path / "trace.json", trace_of([each for n in range(3) for each in step(n)]))
    observation = observed_trace(path)
    signs = observation.signs
    assert observation.seconds.mid == pytest.approx(0.1)
    assert (signs.steps, signs.device) == (3, "NVIDIA A100-SXM4-40GB")
    assert signs.data_fraction == pytest.approx(0.2)
    assert signs.busy_fraction == pytest.approx(0.55)
    assert signs.exchange_fraction == pytest.approx(0.1)
    assert signs.sync_fraction == pytest.approx(0.15)
    assert signs.single_fraction == pytest.approx(0.8)


# by hand: data are fetched for the first 20 of 100 ms, and nothing runs there; from 75 to 100 nothing does either
def test_long_gaps_are_idle(tmp_path: Path) -> None:
    path = written(tmp_path / "trace.json", trace_of([each for n in range(3) for each in step(n)]))
    assert observed_trace(path).signs.idle_fraction == pytest.approx(0.45)


def test_a_long_first_step_shows(tmp_path: Path) -> None:
    events = [event(f"ProfilerStep#{n}", "user_annotation", 1000 * n, 300 if n == 0 else 100) for n in range(4)]
    events += [event("aten::mm", "cpu_op", 1000 * n, 50) for n in range(4)]
    assert observed_trace(written(tmp_path / "trace.json", trace_of(events))).signs.first_factor == pytest.approx(3)


def test_steps_without_operators_are_refused(tmp_path: Path) -> None:
    events = [event("ProfilerStep#7", "user_annotation", 0, 0.03)]
    with pytest.raises(BadInput, match=r"no operators in its steps.*repeat=1"):
        observed_trace(written(tmp_path / "trace.json", trace_of(events)))


def test_a_packed_trace_is_read_alike(tmp_path: Path) -> None:
    document = trace_of(step(1))
    packed = tmp_path / "trace.json.gz"
    packed.write_bytes(gzip.compress(json.dumps(document).encode()))
    assert is_trace(packed)
    assert observed_trace(packed).signs == observed_trace(written(tmp_path / "trace.json", document)).signs


def test_a_log_and_other_json_are_no_trace(tmp_path: Path) -> None:
    assert not is_trace(written(tmp_path / "model.json", {"layers": 3}))
    log = tmp_path / "train.log"
    log.write_text("step 1 loss 2.0\n", encoding="utf-8")
    assert not is_trace(log)


@pytest.mark.parametrize(
    ("text", "reason"), [('{"traceEvents": []}', "has no ProfilerStep"), ('{"traceEvents": [', "is no whole trace")]
)
def test_a_trace_without_steps_or_end_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=reason):
        observed_trace(path)


def test_a_trace_that_torch_writes_is_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    samples = [(torch.zeros(16), 0) for _ in range(24)]
    loader = torch.utils.data.DataLoader(samples, batch_size=4)
    model = torch.nn.Linear(16, 4)
    path = tmp_path / "trace.json"
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=3, repeat=1),
        on_trace_ready=lambda done: done.export_chrome_trace(str(path)),
    ) as profiler:
        for inputs, labels in loader:
            torch.nn.functional.cross_entropy(model(inputs), labels).backward()
            profiler.step()
    assert is_trace(path)
    signs = observed_trace(path).signs
    assert signs.steps == 3
    assert signs.data_fraction is not None and 0 < signs.data_fraction < 1
    assert (signs.busy_fraction, signs.device) == (None, None)
