"""What a tensor is to others is a field; its name is only a name."""

import re
from pathlib import Path

import pytest

import epochcast
from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph, Phase
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import DType, Tensor, grad
from epochcast.describe.graph.trace import Trace
from epochcast.predict.memory.lifetimes import Role, lifetimes


def trace(precision: str = "fp32", **options: bool) -> Trace:
    return zoo_model("gpt2").trace(Recipe(2, "adamw", precision, **options))  # type: ignore[arg-type]


def test_the_copy_of_a_copy_knows_the_original_and_stays_a_gradient() -> None:
    copy = grad(Tensor((2,), name="w")).copy("first", DType.FLOAT16).copy("second", DType.FLOAT32)
    assert (copy.relation.gradient_of, copy.relation.copy_of, copy.dtype) == ("w", "grad:w", DType.FLOAT32)


def test_every_trained_parameter_has_one_gradient_and_its_state_by_field() -> None:
    step = trace()
    written = {t for op in step.ops for t in op.outputs}
    wanted = {p.name for p in step.parameters if p.trainable}
    for field in ("gradient_of", "state_of"):
        owners = {getattr(t.relation, field) for t in written} & wanted
        assert owners == wanted


@pytest.mark.parametrize(("precision", "field"), [("amp_bf16", "copy_of"), ("fp8", "master_of")])
def test_casts_and_masters_of_parameters_are_told_by_field(precision: str, field: str) -> None:
    step = trace(precision)
    parameters = {p.name for p in step.parameters}
    assert {getattr(t.relation, field) for op in step.ops for t in (*op.inputs, *op.weights)} & parameters


def test_what_checkpointing_runs_again_says_so() -> None:
    again = [op for op in trace(checkpointing=True).ops if op.is_recomputed]
    assert again
    assert all(op.phase is Phase.BACKWARD and not op.is_gradient for op in again)
    assert not any(op.is_recomputed for op in trace().ops)


def test_no_code_looks_into_a_name() -> None:
    root = Path(epochcast.__file__).parent
    rooms = ("describe/graph", "predict/memory", "predict/forecast")
    files = [file for room in rooms for file in (root / room).rglob("*.py")]
    files.append(root / "describe/capture/torch/storage_names.py")
    looks = re.compile(r"\bname\.(starts|ends)with\(|\bname\.(r?partition|remove(pre|suf)fix|r?split|find)\(")
    assert len(files) > 50
    assert [file.name for file in files if looks.search(file.read_text(encoding="utf-8"))] == []


def test_names_may_be_anything() -> None:
    """A parameter that is called as a gradient or a copy would be is a parameter."""

    def odd(batch: int) -> Graph:
        b = Builder("odd", batch)
        x = b.linear(b.input("x", (8,)), 8, name="grad:one+two")
        return b.finish(b.linear(b.relu(x, name="relu@x%again"), 10, name="fc@float16%again"))

    def plain(batch: int) -> Graph:
        b = Builder("odd", batch)
        x = b.linear(b.input("x", (8,)), 8, name="one")
        return b.finish(b.linear(b.relu(x, name="two"), 10, name="three"))

    for precision in ("fp32", "amp_fp16", "fp16", "fp8"):
        found, wanted = (
            lifetimes(BuiltModel("odd", build).trace(Recipe(4, "adam", precision))) for build in (odd, plain)
        )
        assert found.roles.tolist() == wanted.roles.tolist()
        assert found.fixed_bytes.tolist() == wanted.fixed_bytes.tolist()
        assert Role.PARAMETERS in found.roles
