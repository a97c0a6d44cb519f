"""How a model is trained, as far as one step of it depends on that."""

from dataclasses import dataclass, replace

from epochcast.errors import BadInput, UnknownName
from epochcast.graph.optimizer import find_optimizer
from epochcast.graph.precision import PRECISIONS, Precision, find_precision

MODES = ("training", "forward", "forward_backward")
STYLES = ("foreach", "fused", "loop")


@dataclass(frozen=True, slots=True)
class Recipe:
    """One step: how many samples, what is updated how, in which precision.

    `mode` training is forward, loss, backward and update; forward_backward leaves the update out; forward runs the
    network alone. `freeze` are glob patterns of parameters that are not trained. `attention` flash keeps the fused
    kernel, eager writes the scores to memory. `accumulate` steps of forward and backward share one update.
    `checkpointing` runs every block's forward pass again in backward instead of keeping its activations.

    `lora` is the rank of the updates that are trained instead of the network (0: none), beside the linear layers whose
    last name is in `lora_targets` (attention's projections where none is named). `four_bit` keeps the frozen weights of
    linear layers in four bits.

    `uneven` is by which fraction of its work one batch differs from the next (one standard deviation): sides of images
    that are drawn anew for each. On several GPUs everybody waits for the largest.
    """

    batch: int
    optimizer: str = "sgd"
    precision: str = "fp32"
    mode: str = "training"
    freeze: tuple[str, ...] = ()
    attention: str = "flash"
    update_style: str = "foreach"
    channels_last: bool = False
    accumulate: int = 1
    with_loss: bool = True
    checkpointing: bool = False
    lora: int = 0
    lora_targets: tuple[str, ...] = ()
    four_bit: bool = False
    uneven: float = 0.0

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise BadInput(f"batch must be at least 1, got {self.batch}")
        if self.accumulate < 1:
            raise BadInput(f"gradient accumulation must be at least 1, got {self.accumulate}")
        if not 0 <= self.uneven < 1:
            raise BadInput(f"batches differ by a fraction of their work, at least 0 and below 1, got {self.uneven}")
        if self.lora < 0 or (self.lora_targets and not self.lora):
            raise BadInput(f"the rank of LoRA must be at least 1, got {self.lora}")
        if self.four_bit and not (self.lora or self.freeze):
            raise BadInput("only frozen weights are kept in four bits: name a rank of LoRA, or what is frozen")
        object.__setattr__(self, "optimizer", find_optimizer(self.optimizer))
        object.__setattr__(self, "precision", find_precision(self.precision).name)
        for what, value, known in (
            ("mode", self.mode, MODES),
            ("attention", self.attention, ("flash", "eager")),
            ("update style", self.update_style, STYLES),
        ):
            if value not in known:
                raise UnknownName(what, value, known)

    @property
    def precision_rules(self) -> Precision:
        """What its precision means."""
        return PRECISIONS[self.precision]

    def at(self, batch: int) -> "Recipe":
        """The same recipe at another batch size."""
        return replace(self, batch=batch)
