"""Fused groups, traffic and launches of small graphs, by hand; and laws over whole networks."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from tests.every import every

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.fusion import MOST_OPS, Fusion
from epochcast.describe.graph.op import Graph, Phase
from epochcast.describe.graph.op_kinds import View
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import Tensor
from epochcast.describe.graph.trace import Trace, trace_from
from epochcast.errors import BadInput, UnknownName

Body = Callable[[Builder, Tensor], Tensor]
COMPILERS = ("inductor", "reduce-overhead", "xla", "vendor")
NETWORKS = ("resnet18", "bert_base_classification", "densenet121", "efficientnet_b0", "gpt2", "unet", "lstm")


def step(body: Body, width: int = 8, *, mode: str = "forward", compile: str = "inductor", batch: int = 4) -> Trace:
    def build(samples: int) -> Graph:
        builder = Builder("net", samples)
        x = builder.input("x", (width,))
        return builder.finish(body(builder, x))

    return trace_from(build, Recipe(batch, mode=mode, compile=compile))


def fusion_of(trace: Trace) -> Fusion:
    assert trace.fusion is not None
    return trace.fusion


def kernels(trace: Trace) -> list[list[str]]:
    """The ops of every kernel, by the word of their kind."""
    return [[_word(trace, place) for place in members] for members in fusion_of(trace).members]


def _word(trace: Trace, place: int) -> str:
    kind = trace.template.base[place].kind
    return str(getattr(kind, "function", kind.label))


def chain(b: Builder, x: Tensor) -> Tensor:
    """linear → relu → ·2 → +x → linear"""
    h = b.relu(b.linear(x, 8, bias=False))
    return b.linear(b.add(b.elementwise("scale", h), x), 8, bias=False)


def test_a_chain_between_two_products_is_one_kernel() -> None:
    trace = step(chain)
    assert kernels(trace) == [["matmul"], ["relu", "scale", "add"], ["matmul"]]
    columns = trace.columns
    assert columns.launches.tolist() == [1, 1, 1]
    # reads the product and x, writes the sum: 4 samples of 8 floats each
    assert columns.read_bytes[1] == 2 * 4 * 8 * 4
    assert columns.written_bytes[1] == 4 * 8 * 4
    assert columns.bytes.sum() < step(chain, compile="none").columns.bytes.sum()


def test_traffic_of_a_kernel_grows_with_the_batch() -> None:
    small, large = step(chain, batch=4), step(chain, batch=40)
    assert large.columns.read_bytes[1] == 10 * small.columns.read_bytes[1]
    assert large.columns.written_bytes[1] == 10 * small.columns.written_bytes[1]


def test_a_tensor_that_a_product_reads_too_is_written_once() -> None:
    def body(b: Builder, x: Tensor) -> Tensor:
        h = b.relu(b.linear(x, 8, bias=False))
        return b.add(b.linear(h, 8, bias=False), b.elementwise("scale", h))

    trace = step(body)
    # scale moves up to the kernel that has its operand; its result waits in memory for the second product
    assert kernels(trace) == [["matmul"], ["relu", "scale"], ["matmul"], ["add"]]
    assert trace.columns.read_bytes[1] == 4 * 8 * 4
    assert trace.columns.written_bytes[1] == 2 * 4 * 8 * 4


def test_no_kernel_waits_for_itself() -> None:
    """relu → product → add(relu, product): the sum cannot be in the kernel of the relu."""

    def body(b: Builder, x: Tensor) -> Tensor:
        h = b.relu(x)
        return b.relu(b.add(h, b.linear(h, 8, bias=False)))

    assert kernels(step(body)) == [["relu"], ["matmul"], ["add", "relu"]]


def test_a_norm_joins_what_is_around_it_and_gives_the_kernel_its_class() -> None:
    def body(b: Builder, x: Tensor) -> Tensor:
        return b.linear(b.elementwise("gelu", b.layer_norm(b.add(b.linear(x, 8, bias=False), x))), 8, bias=False)

    trace = step(body)
    assert kernels(trace) == [["matmul"], ["add", "norm", "gelu"], ["matmul"]]
    assert _classes(trace)[1] is OpClass.LAYER_NORM


def test_reductions_over_other_rows_are_other_kernels() -> None:
    def body(b: Builder, x: Tensor) -> Tensor:
        rows = b.view(x, (x.shape[0], 2, 4))
        return b.layer_norm(b.view(b.softmax(rows), (x.shape[0], 8)))

    assert kernels(step(body)) == [["softmax"], ["norm"]]


def image(samples: int, body: Body) -> Graph:
    b = Builder("net", samples)
    return b.finish(body(b, b.input("x", (3, 8, 8))))


def norm_twice(b: Builder, x: Tensor) -> Tensor:
    h = b.relu(b.batch_norm(b.conv(x, 4, 3, padding=1, bias=False)))
    return b.max_pool(b.relu(b.batch_norm(h)), 2)


def test_batch_norm_is_elementwise_in_inference_alone() -> None:
    inference = trace_from(lambda n: image(n, norm_twice), Recipe(4, mode="forward", compile="inductor"))
    assert kernels(inference) == [["conv"], ["norm", "relu", "norm", "relu"], ["pool"]]
    assert _classes(inference)[1] is OpClass.ELEMENTWISE
    training = trace_from(lambda n: image(n, norm_twice), Recipe(4, mode="forward_backward", compile="inductor"))
    assert kernels(training)[:3] == [["conv"], ["norm", "relu"], ["norm", "relu"]]
    assert _classes(training)[1] is OpClass.BATCH_NORM


def dropped(b: Builder, x: Tensor) -> Tensor:
    """linear → dropout → relu → linear"""
    return b.linear(b.relu(b.dropout(b.linear(x, 8, bias=False))), 8, bias=False)


def test_forward_writes_what_backward_reads_and_cannot_compute_again() -> None:
    forward, training = step(dropped), step(dropped, mode="forward_backward")
    relu = next(op.output.name for op in training.template.base if getattr(op.kind, "function", "") == "relu")
    assert relu not in fusion_of(training).unwritten
    assert training.columns.written_bytes[1] == forward.columns.written_bytes[1]  # the next product reads it, too
    phases = {trace_phase(training, members) for members in fusion_of(training).members}
    assert phases == {(Phase.FORWARD,), (Phase.BACKWARD,)}


def trace_phase(trace: Trace, members: tuple[int, ...]) -> tuple[Phase, ...]:
    return tuple({trace.template.base[place].phase for place in members})


def test_a_dropout_mask_is_never_in_memory() -> None:
    def body(b: Builder, x: Tensor) -> Tensor:
        return b.linear(b.dropout(b.linear(x, 8, bias=False)), 8, bias=False)

    trace = step(body, mode="forward_backward")
    masks = {t.name for op in trace.template.base for t in op.outputs[1:]}
    assert masks and masks <= fusion_of(trace).unwritten


def test_an_epilogue_belongs_to_its_product_in_vendors_submissions() -> None:
    trace = step(chain, compile="vendor")
    assert kernels(trace) == [["matmul"], ["matmul"]]
    eager = step(chain, compile="none").columns
    assert trace.columns.bytes.tolist() == eager.at(eager.is_matrix).bytes.tolist()
    alone = step(lambda b, x: b.relu(b.elementwise("scale", x)), compile="vendor")
    assert kernels(alone) == [["scale", "relu"]]  # nobody to be part of


def test_a_kernel_has_no_more_than_inductors_most_ops() -> None:
    def body(b: Builder, x: Tensor) -> Tensor:
        for _ in range(MOST_OPS + 5):
            x = b.relu(x)
        return x

    assert [len(members) for members in fusion_of(step(body)).members] == [MOST_OPS, 5]


def test_every_op_has_the_entry_of_its_kernel() -> None:
    trace = step(chain)
    for entry, members in enumerate(fusion_of(trace).members):
        assert {int(trace.entries[place]) for place in members} == {entry}
    assert len(trace.layers) == len(trace.columns) == len(trace.places)


@every(("name", "mode", "compiler"), product(NETWORKS, ("training", "forward"), COMPILERS))
def test_a_compiled_network_does_no_more_than_an_eager_one(name: str, mode: str, compiler: str) -> None:
    eager = zoo_model(name).trace(Recipe(2, mode=mode, precision="amp_fp16"))
    trace = eager.under(Recipe(2, mode=mode, precision="amp_fp16", compile=compiler))
    columns, fusion = trace.columns, fusion_of(trace)
    assert len(columns) < len(eager.columns)
    assert columns.launches.sum() < eager.columns.launches.sum()
    assert columns.bytes.sum() < eager.columns.bytes.sum()
    assert columns.read_bytes.min() >= 0 and columns.written_bytes.min() >= 0
    assert columns.flops[columns.is_matrix].sum() == eager.columns.flops[eager.columns.is_matrix].sum()
    run = [place for place, op in enumerate(eager.template.base) if not isinstance(op.kind, View)]
    members = [place for each in fusion.members for place in each]
    assert len(members) == len(set(members)) and set(members) <= set(run)
    if compiler != "vendor":
        assert set(members) == set(run)


@pytest.mark.parametrize("name", NETWORKS)
def test_kernels_can_run_in_their_order(name: str) -> None:
    trace = zoo_model(name).trace(Recipe(2, precision="amp_fp16", compile="inductor"))
    base, fusion = trace.template.base, fusion_of(trace)
    made_by: dict[str, int] = {}
    root: dict[str, str] = {}
    for place, op in enumerate(base):
        for tensor in (*op.inputs, *op.weights):
            writer = made_by.get(root.get(tensor.name, tensor.name))
            if writer is not None and not isinstance(op.kind, View):
                assert writer <= fusion.kernel_of[place]
        for tensor in op.outputs:
            if isinstance(op.kind, View) and op.inputs:
                root[tensor.name] = root.get(op.inputs[0].name, op.inputs[0].name)
            else:
                made_by[root.get(tensor.name, tensor.name)] = int(fusion.kernel_of[place])
    assert np.all(np.diff(fusion.places) > 0)


def test_a_compiler_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UnknownName, match="no compiler called 'inductr'; known: inductor, none"):
        Recipe(1, compile="inductr")
    assert Recipe(1, compile="torch.compile").compile == "inductor"


def _classes(trace: Trace) -> list[OpClass]:
    return [list(OpClass)[index] for index in trace.columns.op_class]


def test_a_loss_that_is_not_compiled_runs_op_by_op_on_scores_in_memory() -> None:
    """Log-softmax and its gradient are as large as the scores; compiled, neither is written."""
    model = zoo_model("gpt2")
    whole, apart = (
        model.trace(Recipe(2, precision="amp_bf16", compile="inductor", eager_loss=is_eager))
        for is_eager in (False, True)
    )
    eager = model.trace(Recipe(2, precision="amp_bf16"))

    def loss_ops(trace: Trace) -> list[int]:
        members = fusion_of(trace).members
        return [len(places) for places in members if trace.template.base[places[0]].layer == "loss"]

    ran = [op for op in eager.template.base if op.layer == "loss" and not isinstance(op.kind, View)]
    assert loss_ops(apart) == [1] * len(ran)
    assert len(loss_ops(whole)) < len(ran)
    scores = {name for name in fusion_of(whole).unwritten if "log_softmax" in name}
    assert scores
    assert not scores & fusion_of(apart).unwritten


def test_a_loss_is_left_out_of_nothing_where_nothing_is_compiled() -> None:
    with pytest.raises(BadInput, match="`eager_loss`"):
        Recipe(2, eager_loss=True)
