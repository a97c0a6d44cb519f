from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.older_frameworks import eager_attention
from epochcast.describe.graph.op import Graph, Op
from epochcast.describe.graph.op_kinds import Attention, Copy, Elementwise, Kind, Matmul, Reduce, Softmax
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.training import step_ops


def attention(*, kv_heads: int = 3, **options: bool) -> Graph:
    """2 samples, 3 heads, 5 tokens of width 7."""
    b = Builder("attention", 2)
    x = b.input("x", (5, 7))
    q = b.view(b.linear(x, 21, name="q"), (2, 3, 5, 7))
    k, v = (b.view(b.linear(x, 7 * kv_heads, name=name), (2, kv_heads, 5, 7)) for name in "kv")
    return b.finish(b.attention(q, k, v, name="attention", **options), loss="none")


def pieces(graph: Graph) -> list[Op]:
    return [op for op in eager_attention(graph.ops) if op.layer == "attention"]


def matrix_flops(ops: list[Op]) -> int:
    return sum(op.work.flops for op in ops if op.op_class.is_matrix)


def test_eager_attention_is_two_products_with_a_softmax_between() -> None:
    kinds: list[Kind] = [Matmul(transpose_b=True), Elementwise("scale"), Softmax(), Matmul()]
    assert [op.kind for op in pieces(attention())] == kinds
    assert [op.kind for op in pieces(attention(causal=True))] == [*kinds[:2], Elementwise("mask"), *kinds[2:]]


def test_eager_and_fused_attention_have_the_same_forward_flops() -> None:
    fused = attention().ops[-1]
    assert isinstance(fused.kind, Attention)
    assert matrix_flops(pieces(attention())) == fused.work.flops == 2 * 2 * (2 * 3 * 5 * 5 * 7)


def test_the_scores_are_in_memory() -> None:
    assert {op.output.shape for op in pieces(attention())[:-1]} == {(2, 3, 5, 5)}
    assert pieces(attention())[-1].output == attention().ops[-1].output


def test_grouped_queries_repeat_their_keys_and_values() -> None:
    ops = pieces(attention(kv_heads=1))
    assert [op.kind for op in ops[:2]] == [Copy("repeat"), Copy("repeat")]
    assert {op.output.shape for op in ops[:2]} == {(2, 3, 5, 7)}
    assert matrix_flops(ops) == matrix_flops(pieces(attention()))


def test_the_gradient_of_a_repetition_is_a_sum() -> None:
    step = step_ops(attention(kv_heads=1), Recipe(2, attention="eager", mode="forward_backward"))
    sums = [op for op in step if op.kind == Reduce("sum") and op.layer == "attention"]
    assert [op.output.shape for op in sums] == [(2, 1, 5, 7)] * 2


def test_eager_backward_is_four_products_and_scaling_reads_only_its_gradient() -> None:
    step = step_ops(attention(), Recipe(2, attention="eager", mode="forward_backward"))
    backward = [op for op in step if op.layer == "attention" and op.name not in {p.name for p in pieces(attention())}]
    assert matrix_flops(backward) == 4 * 2 * (2 * 3 * 5 * 5 * 7)
    (scale,) = [op for op in backward if op.kind == Elementwise("scale")]
    assert scale.work.read_bytes == scale.work.written_bytes == 4 * 2 * 3 * 25


def test_other_ops_are_left_alone() -> None:
    graph = attention()
    assert eager_attention(graph.ops[:-1]) == graph.ops[:-1]


def test_dropped_probabilities_and_their_mask_are_in_memory() -> None:
    """The probabilities are kept for the softmax, the dropped ones for the product, the mask for the dropout."""
    graph = attention(dropout=True)
    (dropout,) = [op for op in pieces(graph) if op.kind == Elementwise("dropout")]
    dropped, mask = dropout.outputs
    assert (dropped.shape, dropped.bytes, mask.bytes) == ((2, 3, 5, 5), 4 * 150, 150)
    step = step_ops(graph, Recipe(2, attention="eager", mode="forward_backward"))
    read_in_backward = {t.name for op in step if op.is_gradient for t in op.inputs}
    assert {dropped.name, mask.name, dropout.inputs[0].name} <= read_in_backward
    fused = step_ops(graph, Recipe(2, mode="forward_backward"))
    assert not any(op.kind == Elementwise("dropout") for op in fused)


def test_a_network_that_only_runs_forward_drops_nothing() -> None:
    forward = step_ops(attention(dropout=True), Recipe(2, attention="eager", mode="forward"))
    assert not any(op.kind == Elementwise("dropout") for op in forward)


def test_a_mask_of_padding_is_one_more_pass_over_the_scores() -> None:
    added = [op for op in pieces(attention(padded=True)) if op.kind == Elementwise("add")]
    assert [op.output.shape for op in added] == [(2, 3, 5, 5)]
    step = step_ops(attention(padded=True), Recipe(2, attention="eager", mode="forward_backward"))
    assert not any(op.is_gradient and op.kind == Elementwise("add") for op in step)


def test_a_given_bias_is_read_both_ways() -> None:
    b = Builder("biased", 2)
    q, k, v = (b.input(name, (3, 5, 7)) for name in "qkv")
    bias = b.parameter("bias", (3, 5, 5))
    out = b.op(Attention(), [q, k, v, bias], [q.shape], name="attention")[0]
    fused = step_ops(b.finish(out, loss="none"), Recipe(2, mode="forward_backward"))
    ops = [op for op in fused if isinstance(op.kind, Attention)]
    plain = [op for op in step_ops(attention(), Recipe(2, mode="forward_backward")) if isinstance(op.kind, Attention)]
    assert ops[0].work.read_bytes - plain[0].work.read_bytes == bias.bytes


def fused_pieces(graph: Graph) -> list[Op]:
    return [op for op in eager_attention(graph.ops, fuses_softmax=True) if op.layer == "attention"]


def test_a_fused_softmax_scales_and_masks_in_its_own_kernel() -> None:
    graph = attention(causal=True, padded=True, dropout=True)
    kinds: list[Kind] = [Matmul(transpose_b=True), Softmax(masked=True), Elementwise("dropout"), Matmul()]
    assert [op.kind for op in fused_pieces(graph)] == kinds
    assert matrix_flops(fused_pieces(graph)) == matrix_flops(pieces(graph))


def test_no_fused_softmax_caps_scores() -> None:
    assert fused_pieces(attention(capped=True)) == pieces(attention(capped=True))


def test_a_fused_softmax_stays_in_half_under_autocast_and_keeps_at_most_a_third_of_the_bytes() -> None:
    """Eager keeps the softmax in float32 and a copy of it in half; the fused kernel writes half, and that is kept."""
    eager, fused = (
        step_ops(attention(causal=True), Recipe(2, attention=kind, precision="amp_fp16", mode="forward_backward"))
        for kind in ("eager", "fused_softmax")
    )

    def scores_bytes(ops: tuple[Op, ...]) -> int:
        read = {t.name: t for op in ops if op.is_gradient for t in op.inputs if t.shape == (2, 3, 5, 5)}
        forward = {t.name for op in ops if not op.is_gradient for t in op.outputs}
        return sum(t.bytes for name, t in read.items() if name in forward)

    assert scores_bytes(fused) == 150 * 2
    assert scores_bytes(eager) >= 150 * (4 + 2)
