import pytest
from tests.every import every

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.autocast import with_precision
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph, Op, Phase
from epochcast.describe.graph.op_kinds import Conv, Copy, Elementwise, Loss, Matmul, Norm, Pool, Softmax
from epochcast.describe.graph.precision import PRECISIONS
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import DType
from epochcast.describe.graph.training import step_ops

AMP = PRECISIONS["amp_fp16"]
HALF, FULL = DType.FLOAT16, DType.FLOAT32


def convnet() -> Graph:
    b = Builder("convnet", 2)
    x = b.input("image", (3, 8, 8))
    x = b.relu(b.batch_norm(b.conv(x, 4, 3, bias=False, name="conv"), name="bn"), name="relu")
    return b.finish(b.linear(b.flatten(b.max_pool(x, 2, name="pool")), 10, name="fc"))


def transformer() -> Graph:
    b = Builder("transformer", 2)
    x = b.embedding(b.input("ids", (3,), DType.INT64), 10, 4, name="table")
    y = b.layer_norm(x, name="ln")
    q, k = b.linear(y, 4, name="q"), b.linear(y, 4, name="k")
    x = b.add(x, b.softmax(b.mul(q, k, name="mul"), name="softmax"), name="add")
    return b.finish(b.linear(x, 10, name="head"))


def step(graph: Graph, precision: str = "amp", mode: str = "training") -> tuple[Op, ...]:
    return step_ops(graph, Recipe(2, precision=precision, mode=mode))


def casts(ops: tuple[Op, ...]) -> list[Op]:
    return [op for op in ops if op.kind == Copy("cast")]


def named(ops: tuple[Op, ...], name: str) -> Op:
    (op,) = [op for op in ops if op.name == name]
    return op


def test_products_run_in_half_and_norms_pools_and_activations_stay_as_they_came() -> None:
    ops = step(convnet())
    for op in ops:
        if isinstance(op.kind, Conv | Matmul):
            assert {t.dtype for t in (*op.inputs, *op.weights, *op.outputs)} == {HALF}
        if isinstance(op.kind, Pool) or op.layer == "relu":
            assert op.dtype is HALF


def test_batch_norm_keeps_the_dtype_of_its_data_and_float32_scales() -> None:
    forward, backward = (op for op in step(convnet()) if isinstance(op.kind, Norm))
    assert (forward.inputs[0].dtype, forward.output.dtype, forward.weights[0].dtype) == (HALF, HALF, FULL)
    assert {t.name: t.dtype for t in backward.outputs} == {
        "grad:conv/out": HALF,
        "grad:bn.weight": FULL,
        "grad:bn.bias": FULL,
    }


def test_softmax_layer_norm_and_loss_run_in_float32() -> None:
    for op in step(transformer()):
        if isinstance(op.kind, Softmax | Loss) or (isinstance(op.kind, Norm) and op.phase is Phase.FORWARD):
            assert op.output.dtype is FULL or op.phase is Phase.BACKWARD
    assert named(step(transformer()), "ln/out").output.dtype is FULL


def test_every_weight_is_cast_once() -> None:
    b = Builder("twice", 2)
    x = b.linear(b.input("x", (4,)), 4, bias=False, name="fc")
    x = b.linear(x, 4, bias=False, name="fc")  # the same layer again
    ops = step(b.finish(x))
    assert [op.inputs[0].name for op in casts(ops)].count("fc.weight") == 1


def test_an_activation_is_cast_by_every_layer_that_reads_it() -> None:
    forward = [op for op in casts(step(transformer())) if op.phase is Phase.FORWARD]
    assert [op.layer for op in forward if op.inputs[0].name == "ln/out"] == ["q", "k"]
    assert len({op.output.name for op in forward}) == len(forward)


def test_a_layer_saves_its_own_copy_for_the_backward_pass() -> None:
    ops = step(transformer())
    cast = next(op for op in casts(ops) if op.inputs[0].name == "ln/out" and op.layer == "k")
    assert cast.output.name in {t.name for t in named(ops, "k/out.weights").inputs}


@pytest.mark.parametrize("graph", [convnet(), transformer()], ids=lambda graph: graph.name)
@pytest.mark.parametrize("precision", ["amp_fp16", "amp_bf16"])
def test_gradients_of_parameters_end_in_float32(graph: Graph, precision: str) -> None:
    last = {t.name: t.dtype for op in step(graph, precision, "forward_backward") for t in op.outputs}
    assert {last[f"grad:{p.name}"] for p in graph.parameters} == {FULL}


@pytest.mark.parametrize("graph", [convnet(), transformer()], ids=lambda graph: graph.name)
def test_a_gradient_has_the_dtype_of_its_tensor(graph: Graph) -> None:
    ops = step(graph, mode="forward_backward")
    stored = {t.name: t.dtype for op in ops for t in op.outputs} | {p.name: p.tensor.dtype for p in graph.parameters}
    gradients = {t.name: t.relation.gradient_of for op in ops for t in op.outputs if not t.relation.copy_of}
    owners = {name: owner for name, owner in gradients.items() if owner in stored}
    assert len(owners) > len(graph.parameters)
    assert all(stored[name] is stored[owner] for name, owner in owners.items())


def test_half_softmax_widens_inside_its_kernel_and_bfloat16_is_cast_first() -> None:
    def casts_of_softmax(precision: str) -> int:
        return sum(op.layer == "softmax" for op in casts(step(transformer(), precision)))

    assert named(step(transformer(), "amp_fp16"), "softmax/out").inputs[0].dtype is HALF
    assert (casts_of_softmax("amp_fp16"), casts_of_softmax("amp_bf16")) == (0, 2)


def test_a_sum_of_half_and_float32_is_float32() -> None:
    b = Builder("mixed", 2)
    x = b.input("x", (4,))
    b.add(b.linear(x, 4, name="fc"), x, name="add")
    made = with_precision(b.ops, b.parameters.values(), AMP)
    assert [t.dtype for t in made[-1].inputs] == [HALF, FULL]
    assert made[-1].output.dtype is FULL


def test_exponentials_are_cast_up_and_sums_widen() -> None:
    b = Builder("functions", 2)
    y = b.linear(b.input("x", (4,)), 4, bias=False, name="fc")
    b.elementwise("exp", y)
    b.reduce("sum", y, [-1])
    b.reduce("mean", y, [-1])
    ops = with_precision(b.ops, b.parameters.values(), AMP)
    assert [op.layer for op in casts(ops)] == ["fc", "fc", "exp"]
    by_layer = {op.layer: (op.inputs[0].dtype, op.output.dtype) for op in ops if op.kind != Copy("cast")}
    assert by_layer == {"fc": (HALF, HALF), "exp": (FULL, FULL), "sum": (HALF, FULL), "mean": (HALF, HALF)}


def test_autocast_leaves_the_update_alone() -> None:
    def update(precision: str) -> list[Op]:
        return [op for op in step(convnet(), precision) if op.phase is Phase.UPDATE]

    assert update("amp") == update("fp32")


def test_resnet50_moves_fewer_bytes_in_mixed_precision_and_fewest_in_half() -> None:
    def moved(precision: str) -> float:
        return float(zoo_model("resnet50").trace(Recipe(64, precision=precision)).columns.bytes.sum())

    fp32, amp, half = (moved(precision) for precision in ("fp32", "amp", "fp16"))
    assert half < amp < 0.65 * fp32
    assert half == pytest.approx(fp32 / 2, rel=0.02)  # targets and pooling indices stay whole numbers


@every("precision", PRECISIONS)
def test_no_precision_changes_the_matrix_flops(precision: str) -> None:
    model = zoo_model("resnet18")
    assert model.trace(Recipe(2, precision=precision)).flops["matrix"] == model.trace(Recipe(2)).flops["matrix"]


def test_fp32_marks_convolutions_and_their_gradients_alone() -> None:
    strict, single = step(convnet(), "fp32_strict"), step(convnet(), "fp32")
    assert [op.work for op in strict] == [op.work for op in single]
    assert {op.math for op in strict} == {"fp32"}
    assert {op.math for op in single if isinstance(op.kind, Conv)} == {"tf32"}
    assert {op.math for op in single if not isinstance(op.kind, Conv)} == {"fp32"}
    assert any(isinstance(op.kind, Conv) and op.is_gradient for op in single)
    assert any(isinstance(op.kind, Matmul) for op in single)


def test_tf32_marks_the_products_and_moves_the_same_bytes() -> None:
    single, tf32 = step(convnet(), "fp32"), step(convnet(), "tf32")
    assert [op.work for op in single] == [op.work for op in tf32]
    assert {op.math for op in tf32 if isinstance(op.kind, Conv | Matmul)} == {"tf32"}
    assert {op.math for op in tf32 if isinstance(op.kind, Norm | Elementwise)} == {"fp32"}


@pytest.mark.parametrize(("precision", "dtype"), [("fp16", HALF), ("bf16", DType.BFLOAT16), ("fp64", DType.FLOAT64)])
def test_a_pure_precision_stores_everything_in_it(precision: str, dtype: DType) -> None:
    ops = step(convnet(), precision)
    tensors = [t for op in ops for t in (*op.inputs, *op.weights, *op.outputs)]
    assert {t.dtype for t in tensors if t.dtype.is_float} == {dtype}
    assert casts(ops) == []


def test_a_bias_added_by_a_kernel_of_its_own_is_cast_like_the_weight() -> None:
    b = Builder("biased", 2)
    y = b.linear(b.input("x", (4,)), 4, bias=False, name="fc")
    b.add(y, b.parameter("fc.bias", (4,)), name="bias")
    made = with_precision(b.ops, b.parameters.values(), AMP)
    assert {t.dtype for t in (*made[-1].inputs, made[-1].output)} == {HALF}


def test_weights_in_half_leave_the_residual_stream_in_half_and_norms_in_float32() -> None:
    """Layer norms cast up; the sum of a half table's rows and float32 scores is float32 again."""
    ops = step(transformer(), "amp_fp16_half")
    assert named(ops, "table/out").output.dtype is HALF
    assert named(ops, "ln/out").output.dtype is FULL
    assert not [op for op in casts(ops) if op.inputs[0].name in ("q.weight", "k.weight")]
    update = [t.dtype for op in ops if op.phase is Phase.UPDATE for t in (*op.inputs, *op.outputs)]
    assert update and set(update) == {HALF}


def test_adapters_beside_weights_in_half_are_trained_in_float32() -> None:
    """PEFT casts their input up, autocast casts it down again: each adapter keeps its own copy."""
    recipe = Recipe(2, precision="amp_fp16_half", optimizer="adamw", lora=2, lora_targets=("q", "k"), lora_dropout=0.0)
    ops = step_ops(transformer(), recipe)
    states = {t.dtype for op in ops if op.phase is Phase.UPDATE for t in op.inputs if t.relation.state_of}
    assert states == {FULL}
    assert named(ops, "q.lora_a/out").inputs[0].name != named(ops, "k.lora_a/out").inputs[0].name
    assert {named(ops, f"{layer}.lora_a/out").inputs[0].dtype for layer in "qk"} == {HALF}
