"""From a forward graph to what one step executes: loss, backward, update, in the precision of the recipe."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from epochcast.describe.graph.activation_offload import with_offloaded_activations
from epochcast.describe.graph.attention_masks import with_masks
from epochcast.describe.graph.autocast import with_precision
from epochcast.describe.graph.backward import backward
from epochcast.describe.graph.checkpointing import checkpointed, half_checkpointed, without_scores
from epochcast.describe.graph.chunked_loss import with_chunked_loss
from epochcast.describe.graph.early_update import updated_in_backward, with_average
from epochcast.describe.graph.expert_capacity import with_expert_capacity
from epochcast.describe.graph.kernels import NO_KERNELS, loss_chunks
from epochcast.describe.graph.lora import with_lora
from epochcast.describe.graph.older_frameworks import eager_attention
from epochcast.describe.graph.op import Graph, Op, Parameter
from epochcast.describe.graph.op_kinds import Loss, Softmax
from epochcast.describe.graph.optimizer import update
from epochcast.describe.graph.quantised_base import BASES, NOT_QUANTISED, with_quantised_base
from epochcast.describe.graph.recipe import HALF, OPERATORS, SELECTIVE, Recipe
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.errors import UnknownName

LOSSES = ("cross_entropy", "mse", "bce", "ctc", "none")
LOSS_LAYER = "loss"
"""The layer of the ops of a loss."""


def step_ops(graph: Graph, recipe: Recipe) -> tuple[Op, ...]:
    """Every op of one step of a graph at the recipe's batch, in executable order."""
    return as_recipe_runs(float_ops(graph, recipe), graph, recipe)


def float_ops(graph: Graph, recipe: Recipe) -> tuple[Op, ...]:
    """The same in float32, without checkpointing."""
    if graph.batch != recipe.batch:
        raise ValueError(f"the graph is at batch {graph.batch}, the recipe at {recipe.batch}")
    graph = adapted(graph, recipe)
    if recipe.expert_capacity is not None:
        graph = with_expert_capacity(graph, recipe.expert_capacity)
    if recipe.attention != "flash":
        ops = eager_attention(
            graph.ops,
            with_dropout=recipe.mode != "forward",
            only_capped=recipe.attention == "sdpa",
            fuses_softmax=recipe.attention == "fused_softmax",
        )
        graph = replace(graph, ops=ops)
    if recipe.attention == "sdpa":
        graph = with_masks(graph, is_padded=recipe.padding_mask)
    if recipe.mode == "forward":
        return graph.ops
    if recipe.with_loss:
        graph = with_loss(graph)
    ops = (*graph.ops, *backward(graph))
    return (*ops, *_updates(graph.parameters, recipe)) if recipe.mode == "training" else ops


def _updates(parameters: tuple[Parameter, ...], recipe: Recipe) -> tuple[Op, ...]:
    return update(parameters, recipe.optimizer, recipe.update_style, is_apart=recipe.update_in_backward)


def as_recipe_runs(ops: tuple[Op, ...], graph: Graph, recipe: Recipe) -> tuple[Op, ...]:
    """Float32 ops rewritten to the recipe's precision, with checkpointing where it asks for that."""
    parameters = adapted(graph, recipe).parameters
    return as_recipe_keeps(as_recipe_stores(ops, parameters, recipe), parameters, graph.name, recipe)


def as_recipe_keeps(
    ops: tuple[Op, ...], parameters: tuple[Parameter, ...], name: str, recipe: Recipe
) -> tuple[Op, ...]:
    """The same with what the recipe computes again, in parts, earlier or elsewhere, so that it holds less at once."""
    if recipe.mode == "forward":
        return ops
    chunks = recipe.loss_chunks
    if recipe.kernels != NO_KERNELS and chunks == 1 and recipe.with_loss:
        chunks = loss_chunks(ops, name)
    if chunks > 1:
        ops = with_chunked_loss(ops, chunks, name)
    if recipe.checkpointing:
        ops = _CHECKPOINTED[recipe.checkpointing](ops, name)
    if recipe.offload_activations:
        ops = with_offloaded_activations(ops, parameters)
    if recipe.mode == "training" and recipe.update_in_backward:
        ops = updated_in_backward(ops, parameters)
    return with_average(ops, parameters) if recipe.ema and recipe.mode == "training" else ops


_CHECKPOINTED: Mapping[bool | str, Callable[[Sequence[Op], str], tuple[Op, ...]]] = {
    True: checkpointed,
    SELECTIVE: without_scores,
    OPERATORS: partial(checkpointed, keeps_products=True),
    HALF: half_checkpointed,
}


def adapted(graph: Graph, recipe: Recipe) -> Graph:
    """The graph with LoRA's updates added and the parameters frozen that the recipe freezes."""
    if recipe.lora:
        graph = with_lora(
            graph, recipe.lora, recipe.lora_targets, has_dropout=recipe.lora_dropout > 0, adapter=recipe.adapter
        )
    return graph.frozen(recipe.freeze) if recipe.freeze else graph


def as_recipe_stores(
    ops: tuple[Op, ...], parameters: tuple[Parameter, ...], recipe: Recipe, *, is_stored: bool = False
) -> tuple[Op, ...]:
    """Float32 ops as the recipe stores them: frozen weights quantised, all others in its precision, which ops have
    already where `is_stored`.
    """
    rules = recipe.precision_rules
    if recipe.quantize != NOT_QUANTISED:
        ops = with_quantised_base(ops, parameters, BASES[recipe.quantize], rules.products)
    return with_precision(ops, parameters, rules, is_stored=is_stored, has_adapters=bool(recipe.lora))


def with_loss(graph: Graph) -> Graph:
    """The graph with its loss after every output; the new outputs are the losses."""
    if graph.loss == "none":
        return graph
    ops, targets, results = list(graph.ops), [], []
    for output in graph.outputs:
        loss_ops = tuple(_loss(output, graph.loss))
        ops.extend(loss_ops)
        targets.append(loss_ops[-1].inputs[1])
        results.append(loss_ops[-1].output)
    return replace(graph, inputs=(*graph.inputs, *targets), ops=tuple(ops), outputs=tuple(results))


def _loss(output: Tensor, loss: str) -> Iterator[Op]:
    """Cross entropy is a log-softmax over classes and the negative log-likelihood of the target; classes come last, or
    second where positions follow them (segmentation).
    """
    value = Tensor((1,), DType.FLOAT32, f"loss:{output.name}")
    match loss:
        case "cross_entropy":
            positions = (output.shape[0], *output.shape[2:]) if len(output.shape) > 3 else output.shape[:-1]
            log = replace(output, name=f"log_softmax:{output.name}")
            target = Tensor(positions, DType.INT64, f"target:{output.name}")
            yield Op(f"{output.name}.log_softmax", Softmax(log=True), (output,), (log,), layer=LOSS_LAYER)
            yield Op(f"{output.name}.nll", Loss("nll"), (log, target), (value,), layer=LOSS_LAYER)
        case "ctc":  # Graves et al. 2006: at most one label per frame; the recursion over them is one op
            log = replace(output, name=f"log_softmax:{output.name}")
            target = Tensor(output.shape[:-1], DType.INT64, f"target:{output.name}")
            yield Op(f"{output.name}.log_softmax", Softmax(log=True), (output,), (log,), layer=LOSS_LAYER)
            yield Op(f"{output.name}.ctc", Loss("ctc"), (log, target), (value,), layer=LOSS_LAYER)
        case "mse" | "bce":
            target = replace(output, name=f"target:{output.name}")
            yield Op(f"{output.name}.{loss}", Loss(loss), (output, target), (value,), layer=LOSS_LAYER)
        case _:
            raise UnknownName("loss", loss, LOSSES)
