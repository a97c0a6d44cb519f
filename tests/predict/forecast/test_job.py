import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.errors import BadInput, UnknownName, UnknownOption
from epochcast.predict.forecast.job import JOB_OPTIONS, Job

JOBS = st.builds(
    Job,
    st.sampled_from(["resnet50", "net.py:make", "hf:config.json"]),
    batch=st.none() | st.integers(1, 10**6),
    precision=st.sampled_from(["fp32", "amp", "bf16", "float16"]),
    optimizer=st.sampled_from(["sgd", "AdamW", "momentum"]),
    accumulate=st.integers(1, 64),
    freeze=st.lists(st.sampled_from(["layer1.*", "fc"]), max_size=2),
    checkpointing=st.booleans(),
    channels_last=st.none() | st.booleans(),
    samples=st.none() | st.integers(1, 10**9),
    input_shape=st.none() | st.tuples(st.integers(1, 8), st.integers(1, 512)),
    loader_seconds=st.none() | st.floats(1e-6, 10),
    framework=st.sampled_from(["pytorch", "tensorflow"]),
)


@given(job=JOBS)
def test_a_job_comes_back_from_its_dictionary_and_from_a_pickle(job: Job) -> None:
    assert Job.from_dict(job.as_dict()) == job
    assert pickle.loads(pickle.dumps(job)) == job
    assert hash(Job.from_dict(job.as_dict())) == hash(job)


def test_names_are_canonical_so_that_equal_jobs_are_equal() -> None:
    assert Job("resnet50", batch=8, precision="amp", optimizer="AdamW") == Job(
        "resnet50", batch=8, precision="amp_fp16", optimizer="adamw"
    )
    assert Job("resnet50", dataset="ImageNet-1k").dataset == "imagenet-1k"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 0}, "batch must be at least 1, got 0"),
        ({"batch": 2.5}, "batch must be a whole number, such as 64, got 2.5"),
        ({"batch": True}, "batch must be a whole number, such as 64, got True"),
        ({"batch": "64"}, "batch must be a whole number, such as 64, got '64'"),
        ({"batch": 8, "global_batch": 64}, "a job has one batch"),
        ({"freeze": "layer1.*"}, r"freeze must be a list of texts, such as \['layer1.\*'\], got 'layer1.\*'"),
        (
            {"input_shape": "3x224"},
            r"input_shape must be a list of whole numbers, such as \(3, 224, 224\), got '3x224'",
        ),
        (
            {"checkpointing": "yes"},
            "checkpointing must be true or false or full or half or operators or selective or none, got 'yes'",
        ),
        ({"precision": None}, "precision must be text, got None"),
        ({"samples": 0}, "samples must be at least 1, got 0"),
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"validation_samples": -1}, "validation_samples must be at least 0, got -1"),
        ({"checkpoints_per_epoch": -0.5}, "checkpoints_per_epoch must be at least 0, got -0.5"),
        ({"augment": 0}, "augment must be at least 1, got 0"),
        ({"loader_seconds": float("nan")}, "loader_seconds must be a number, got nan"),
        ({"loader_seconds": 0}, "loader_seconds must be above 0, got 0"),
        ({"four_bit": True}, "a quantised base is frozen: give a rank"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused_by_the_name_of_its_option(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Job("resnet50", **options)


def test_names_that_are_none_are_refused_with_the_near_ones() -> None:
    with pytest.raises(UnknownName, match="no framework called 'jax'; known: pytorch, tensorflow"):
        Job("resnet50", framework="jax")
    with pytest.raises(BadInput, match=r"job has no field 'batchsize'; near: .*batch"):
        Job.from_dict({"model": "resnet50", "batchsize": 3})
    with pytest.raises(UnknownOption, match="no option called 'epoch'; near: epochs"):
        Job("resnet50", epoch=9)  # type: ignore[call-arg]
    with pytest.raises(BadInput, match="model must be given"):
        Job.from_dict({"batch": 3})


def test_every_option_says_what_it_is() -> None:
    for one in JOB_OPTIONS:
        assert one.help[0].isupper() or one.help[0].islower()
        assert one.group


def test_a_live_model_is_kept_as_it_is_and_written_down_by_reference() -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(3, 4)
    assert Job(module, batch=2).model is module
    with pytest.raises(BadInput, match=r"a job with a live Linear cannot be written down: say what makes it"):
        Job(module, batch=2).as_dict()
    written = Job(module, batch=2, reference="net.py:make").as_dict()
    assert written["model"] == "net.py:make"
    assert len(written["fingerprint"]) == 16
    assert Job.from_dict(written).as_dict() == written


@pytest.mark.slow
def test_a_changed_model_is_noticed_by_its_fingerprint(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    import epochcast as ec

    for name, width in (("same", 4), ("other", 5)):
        code = f"import torch\ndef make():\n    return torch.nn.Linear(3, {width})\n"
        (tmp_path / f"{name}.py").write_text(code)

    def warnings(name: str) -> list[str]:
        job = Job(torch.nn.Linear(3, 4), batch=2, input_shape=(3,), reference=f"{tmp_path / name}.py:make")
        answer = ec.forecast(Job.from_dict(job.as_dict()), device="V100")
        return [warning for warning in answer.warnings if "a different model" in warning]

    assert warnings("same") == []
    assert len(warnings("other")) == 1
