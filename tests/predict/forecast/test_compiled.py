"""Laws of compiled steps and of hosts, over real networks; and what a user meets."""

import pytest
from tests.every import every

from epochcast.errors import BadInput, UnknownName
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import Placement, place
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.where import Where

SESSION = Session(with_own_profiles=False)
CASES = [
    ("resnet18", 2, "amp", "training"),
    ("resnet50", 64, "amp", "training"),
    ("resnet50", 64, "fp32", "forward"),
    ("bert_base_classification", 8, "fp32", "training"),
    ("gpt2", 2, "amp_bf16", "training"),
    ("mobilenet_v2", 4, "fp16", "forward_backward"),
]
every_case = every(("model", "batch", "precision", "mode"), CASES)


def forecast(job: Job, **where: object) -> Forecast:
    return forecast_job(job, Where("A100", **where).placement(), SESSION)  # type: ignore[arg-type]


@every_case
def test_a_better_compiler_is_never_slower_and_needs_no_more(model: str, batch: int, precision: str, mode: str) -> None:
    by_compiler = {
        name: forecast(Job(model, batch=batch, precision=precision, mode=mode, update_style="fused", compile=name))
        for name in ("none", "inductor", "reduce-overhead", "vendor")
    }
    steps = [answer.step_seconds.mid for answer in by_compiler.values()]
    assert steps == sorted(steps, reverse=True)
    assert steps[1] < steps[0]
    reserved = [answer.reserved_bytes or 0 for answer in by_compiler.values()]
    assert max(reserved) == reserved[0] > 0
    assert by_compiler["inductor"].compile == "inductor"


def test_a_small_batch_waits_for_its_host() -> None:
    job = Job("resnet18", batch=1, precision="amp")
    steps = [forecast(job, host_class=host).step_seconds for host in ("1us", "workstation", "cloud", "old_server")]
    assert [s.mid for s in steps] == sorted(s.mid for s in steps)
    assert steps[-1].mid > 1.5 * steps[0].mid
    large = Job("resnet18", batch=1024, precision="amp")
    assert forecast(large, host_class="cloud").step_seconds.mid == pytest.approx(
        forecast(large).step_seconds.mid, rel=0.05
    )


def test_a_step_of_launches_alone_has_a_width() -> None:
    step = forecast(Job("mnist_cnn", batch=1), host_class="50us").step_seconds
    assert step.low < 0.9 * step.mid and step.high > 1.1 * step.mid


def test_graphs_cure_a_slow_host() -> None:
    slow, graphs = (
        forecast(Job("resnet18", batch=1, precision="amp", compile=name), host_class="old_server")
        for name in ("none", "reduce-overhead")
    )
    assert graphs.step_parts is not None and slow.step_parts is not None
    assert graphs.step_parts.host < 0.1 * slow.step_parts.host


def test_hooks_add_to_every_backward_pass_for_every_trained_tensor() -> None:
    plain, hooked = (forecast(Job("resnet18", batch=8, hook_seconds=each)) for each in (0.0, 1e-3))
    assert hooked.step_seconds.mid - plain.step_seconds.mid == pytest.approx(62e-3)  # 20 conv, 20 norms of 2, 1 linear
    assert hooked.step_seconds.high > hooked.step_seconds.mid + 50e-3
    frozen = forecast(Job("resnet18", batch=8, hook_seconds=1e-3, freeze=("layer*",)))
    assert frozen.step_seconds.mid < hooked.step_seconds.mid - 50e-3
    assert forecast(Job("resnet18", batch=8, hook_seconds=1e-3, mode="forward")) == forecast(
        Job("resnet18", batch=8, mode="forward")
    )


def test_a_compiled_update_is_not_a_kernel_per_tensor() -> None:
    assert Job("resnet18", batch=1, update_style="loop", compile="inductor").recipe(1).update_style == "foreach"
    assert Job("resnet18", batch=1, compile="xla").recipe(1).update_style == "fused"
    assert Job("resnet18", batch=1, update_style="loop").recipe(1).update_style == "loop"


def test_a_compiled_job_keeps_its_name_and_splits_over_gpus() -> None:
    job = Job("resnet50", batch=32, precision="amp", compile="torch.compile")
    assert job.compile == "inductor" and Job.from_dict(job.as_dict()) == job
    for strategy in ("ddp", "fsdp", "pipeline", "mirrored"):
        eager = forecast(Job("resnet50", batch=32, precision="amp"), gpus=4, strategy=strategy)
        compiled = forecast(job, gpus=4, strategy=strategy)
        assert 0.3 * eager.step_seconds.mid < compiled.step_seconds.mid <= 1.001 * eager.step_seconds.mid


def test_a_transformer_is_compiled_under_tensor_parallelism() -> None:
    jobs = [Job("gpt2", batch=4, precision="amp_bf16", compile=name) for name in ("none", "inductor")]
    eager, compiled = (forecast(job, gpus=4, strategy="tensor").step_seconds.mid for job in jobs)
    assert 0.3 * eager < compiled < eager


def test_a_placement_keeps_its_host() -> None:
    for text in ("cloud", "12us"):
        placement = place("V100", host_class=text)
        assert Placement.from_dict(placement.as_dict()) == placement
        assert placement.with_device(place("T4").device).host == placement.host
    assert place("V100").as_dict()["host_class"] is None


def test_bad_options_are_refused_in_one_line() -> None:
    with pytest.raises(UnknownName, match="no compiler called 'inductr'"):
        Job("resnet18", compile="inductr")
    with pytest.raises(UnknownName, match="no host class called 'cluod'"):
        Where("V100", host_class="cluod")
    with pytest.raises(BadInput, match="a launch takes above 0"):
        Where("V100", host_class="-8us")
    with pytest.raises(BadInput, match="hook_seconds must be at least 0"):
        Job("resnet18", hook_seconds=-1e-3)


def test_a_step_that_claims_vendors_fusion_says_so() -> None:
    assert any("vendor" in warning for warning in forecast(Job("resnet18", batch=8, compile="vendor")).warnings)
