"""The layers of a model, and two models side by side."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.describe.capture.inspection import Inspection
from epochcast.describe.capture.model_comparison import FLOPS, QUANTITIES, ModelComparison
from epochcast.surfaces.render.notes_view import Notes
from epochcast.surfaces.render.table_parts import shape, table
from epochcast.units import show_bytes, show_count


def inspection(answer: Inspection) -> RenderableType:
    """The table of layers and the totals."""
    has_fields = any(layer.receptive_field for layer in answer.layers)
    rows = [
        (
            layer.name,
            shape(layer.output_shape),
            f"{layer.parameters:,}",
            f"{layer.activations:,}",
            show_count(layer.forward_flops, "FLOP") if layer.forward_flops else "",
            layer.kind,
            show_bytes(layer.bytes),
            *([shape(layer.receptive_field or ())] if has_fields else []),
        )
        for layer in answer.layers
    ]
    title = f"{answer.model}, one sample of {shape(answer.input_shape)}"
    columns = "layer | output | > parameters | > activations | > matrix work | kind | > moved"
    drop = ["moved", "kind"]
    if has_fields:
        columns, drop = f"{columns} | > receptive field", ["receptive field", *drop]
    layers = table(title, columns, rows, drop=drop)
    flops = answer.forward_flops_per_sample
    totals = table(
        "totals per sample",
        "| > |",
        [
            ("parameters", f"{answer.parameters:,}", ""),
            ("trainable", f"{answer.trainable_parameters:,}", ""),
            ("activations", f"{answer.activations_per_sample:,}", ""),
            ("forward, matrix work", show_count(flops, "FLOP"), f"{flops // 2:,} multiply-adds of 2 FLOP"),
            ("forward, elementwise", show_count(answer.elementwise_flops_per_sample, "FLOP"), ""),
            ("training step, matrix work", show_count(answer.training_flops_per_sample, "FLOP"), ""),
        ],
    )
    pieces: list[RenderableType] = [layers, totals]
    if answer.opaque_ops:
        pieces.append(Text("unknown ops: " + ", ".join(answer.opaque_ops), style="yellow"))
    pieces.append(Notes(answer.notes))
    return Group(*pieces)


def comparison(answer: ModelComparison) -> RenderableType:
    """The totals of two models, and the change from the first to the second."""
    first, second = answer.first, answer.second
    rows: list[Sequence[str]] = [("output", shape(first.output_shape), shape(second.output_shape), "", "")]
    for name, title in QUANTITIES.items():
        ratio = answer.ratios[name]
        cells = [
            show_count(getattr(model, name), "FLOP") if name in FLOPS else f"{getattr(model, name):,}"
            for model in (first, second)
        ]
        rows.append((title, *cells, *(("", "") if ratio is None else (f"{ratio:.3f}", f"{ratio - 1:+.1%}"))))
    return table(
        f"{first.model} versus {second.model}", f"| > {first.model} | > {second.model} | > ratio | > change", rows
    )
