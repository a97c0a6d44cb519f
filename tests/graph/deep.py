"""Deep networks of the zoo cut short, drawn out of few blocks and built block by block."""

from dataclasses import replace

from epochcast.capture.model import BuiltModel
from epochcast.capture.zoo import ZOO
from epochcast.graph.op import Graph
from epochcast.graph.recipe import Recipe

DEPTH = 10
"""A few copies; even, for those whose blocks repeat by two."""
KINDS = [
    "bert_large_pretraining",
    "gpt2",
    "opt_125m",
    "llama2_7b",
    "gemma2_2b",
    "qwen3_30b_a3b",
    "gpt_oss_20b",
    "phi_2",
]
RECIPES = [
    Recipe(4, optimizer="adamw", precision="bf16"),
    Recipe(4, optimizer="lamb", precision="amp", attention="eager"),
    Recipe(4, optimizer="adam", checkpointing=True, update_style="fused"),
    Recipe(4, optimizer="adam8bit", precision="fp8", update_style="loop"),
    Recipe(4, mode="forward"),
    Recipe(4, mode="forward_backward", precision="bf16", lora=8, four_bit=True),
]


def shallower(name: str, layers: int = DEPTH) -> tuple[BuiltModel, BuiltModel]:
    """A network of the zoo with fewer layers, drawn out, and the same built layer by layer."""
    entry = replace(ZOO[name], options={**ZOO[name].options, "layers": layers})
    few = entry.few()
    assert few is not None

    def build(batch: int) -> Graph:
        return entry.build(name, batch, (32,))

    def build_few(batch: int) -> Graph:
        return few[0].build(name, batch, (32,))

    return BuiltModel(name, build, (build_few, few[1])), BuiltModel(name, build)
