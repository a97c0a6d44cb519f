from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.zoo.attention_layers import rms_norm
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph, Phase
from epochcast.describe.graph.op_kinds import Copy, Elementwise, View
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import DType
from epochcast.describe.graph.trace import Trace


def normed(batch: int) -> Graph:
    b = Builder("net", batch)
    x = b.linear(b.input("x", (8, 32)), 32, name="in")
    return b.finish(b.linear(rms_norm(b, x, name="norm"), 10, name="out"))


def trace(precision: str) -> Trace:
    return BuiltModel("net", normed).trace(Recipe(4, precision=precision, mode="forward_backward"))


def test_a_norm_casts_up_and_down_again() -> None:
    casts = [op for op in trace("bf16").ops if op.kind == Copy("cast")]
    ends = [(op.inputs[0].dtype, op.output.dtype) for op in casts]
    up, down = (DType.BFLOAT16, DType.FLOAT32), (DType.FLOAT32, DType.BFLOAT16)
    assert ends == [up, down, up, down]


def test_what_is_between_stays_in_float32_and_so_do_its_gradients() -> None:
    ops = trace("fp16").ops
    squares = [op for op in ops if op.kind == Elementwise("pow")]
    assert [op.phase for op in squares] == [Phase.FORWARD, Phase.BACKWARD]
    assert {op.output.dtype for op in squares} == {DType.FLOAT32}


def test_in_float32_nothing_is_cast() -> None:
    ops = trace("fp32").ops
    assert not any(op.kind == Copy("cast") for op in ops)
    assert any(op.kind == View("widen") for op in ops)


def test_the_rest_is_half() -> None:
    made = trace("bf16")
    assert {op.dtype for op in made.ops if op.layer == "out" and op.phase is Phase.FORWARD} == {DType.BFLOAT16}
