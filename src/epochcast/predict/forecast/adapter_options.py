"""Options of a job about adapters and kernels that stand in for PyTorch's."""

from dataclasses import dataclass
from functools import partial

from epochcast.base.options import option
from epochcast.base.record import Record
from epochcast.describe.graph.kernels import UNSLOTH

_recipe = partial(option, group="recipe")


@dataclass(frozen=True, kw_only=True)
class AdapterOptions(Record):
    """What `Job` says of adapters besides LoRA's own options."""

    adapter: str = _recipe(
        "lora",
        "What --lora trains: lora, dora, ia3 (no rank); on captured models by PEFT also loha, lokr, prefix (of so many "
        "tokens).",
    )
    kernels: str = _recipe(
        "none",
        "liger or unsloth: fused norms, rotations, gates and loss of language models; unsloth also recomputes blocks "
        "from inputs in host memory; none: PyTorch's.",
    )

    def of_kernels(self) -> dict[str, object]:
        """What the kernels bring with them."""
        return {"checkpointing": True, "offload_activations": True} if self.kernels == UNSLOTH else {}
