"""How a model is trained: everything one step depends on."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from epochcast.describe.graph.adapters import LORA, find_adapter
from epochcast.describe.graph.compilers import EAGER, find_compiler
from epochcast.describe.graph.kernels import NO_KERNELS, find_kernels
from epochcast.describe.graph.optimizer import find_optimizer
from epochcast.describe.graph.precision import (
    OF_HALF_WEIGHTS,
    PRECISIONS,
    SINGLE,
    SINGLE_STRICT,
    Method,
    Precision,
    find_precision,
)
from epochcast.describe.graph.quantised_base import BASES, NOT_QUANTISED, find_base
from epochcast.errors import BadInput, UnknownName

MODES = ("training", "forward", "forward_backward")
STYLES = ("foreach", "fused", "loop")
SELECTIVE, OPERATORS, HALF = "selective", "operators", "half"
ATTENTIONS = ("sdpa", "flash", "fused_softmax", "eager")
LORA_DROPOUT = 0.05
"""As in most published recipes (QLoRA's for 33B and 65B, LitGPT's); the default of PEFT is 0."""
OFFLOADS = ("none", "optimizer", "parameters")
_LABELS = {SINGLE_STRICT: SINGLE, **OF_HALF_WEIGHTS}


@dataclass(frozen=True, slots=True)
class Recipe:
    """One step: how many samples, what is updated how, in which precision.

    `mode` training is forward, loss, backward and update; forward_backward leaves the update out; forward runs the
    network alone. `freeze` are glob patterns of parameters that are not trained. `attention` sdpa takes PyTorch's own
    fused kernel and writes capped scores to memory, flash fuses these too. fused_softmax writes the scores and, by one
    kernel that scales and masks them, the softmax; eager writes after every step. `accumulate` steps of forward and
    backward share one update. `checkpointing` runs every block's forward pass again in backward instead of keeping its
    activations; selective does so with the scores of attention alone, operators with all but attention and every second
    product. `offload_activations` keeps what is saved in the host's memory.

    `loss_chunks`: head and loss run on so many parts of the tokens in turn. `update_in_backward`: every parameter is
    updated as soon as its gradient is finished. `ema`: a moving average of the weights is kept. `padding_mask`: fused
    attention reads a mask.

    `lora` is the rank of what `adapter` trains instead of the network (0: nothing; `adapters`), beside the linear
    layers that `lora_targets` name (by default the projections of attention). `quantize` is the format that
    the frozen weights of linear layers are kept in (`quantised_base`).

    `uneven` is how much the work of one batch differs from the next, as a fraction (one standard deviation): image
    sizes are drawn for each batch. With several GPUs all wait for the one with the most work. `sequence_parallel`:
    tensor parallel ranks cut along the tokens what they do not split; `keep_gathered`: what they gather stays for the
    backward pass.

    `expert_capacity` is the rows of an expert by those of balanced routing (None: nothing is dropped or padded), and
    `expert_imbalance` what the busiest of expert parallel ranks gets, by the mean of all.

    `offload` says what lies in the host's memory: the optimizer's state, or the parameters too.

    `kernels` are those of a library that stand in for PyTorch's (`kernels`).

    `compile` is the compiler that fuses the ops of the step (`compilers`); `none` runs them one by one. `eager_loss`:
    the loss is outside of what is compiled.
    """

    batch: int
    optimizer: str = "sgd"
    precision: str = "fp32"
    mode: str = "training"
    freeze: tuple[str, ...] = ()
    attention: str = "sdpa"
    update_style: str = "foreach"
    channels_last: bool = False
    accumulate: int = 1
    with_loss: bool = True
    checkpointing: bool | str = False
    lora: int = 0
    lora_targets: tuple[str, ...] = ()
    lora_dropout: float = LORA_DROPOUT
    adapter: str = LORA
    quantize: str = NOT_QUANTISED
    uneven: float = 0.0
    compile: str = EAGER
    kernels: str = NO_KERNELS
    eager_loss: bool = False
    sequence_parallel: bool = False
    keep_gathered: bool = False
    offload: str = OFFLOADS[0]
    offload_activations: bool = False
    loss_chunks: int = 1
    update_in_backward: bool = False
    ema: bool = False
    padding_mask: bool = False
    expert_capacity: float | None = None
    expert_imbalance: float = 1.0

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise BadInput(f"batch must be at least 1, got {self.batch}")
        if self.accumulate < 1:
            raise BadInput(f"`accumulate` must be at least 1, got {self.accumulate}")
        if not 0 <= self.uneven < 1:
            raise BadInput(f"`uneven` must be a fraction, at least 0 and below 1, got {self.uneven}")
        if self.lora < 0 or (self.lora_targets and not self.lora):
            raise BadInput(f"`lora` must be a rank of at least 1, got {self.lora}")
        object.__setattr__(self, "adapter", find_adapter(self.adapter))
        object.__setattr__(self, "quantize", find_base(self.quantize))
        if self.quantize != NOT_QUANTISED and not (self.lora or self.freeze):
            raise BadInput("a quantised base is frozen: give a rank (`lora`) or parameters to freeze (`freeze`)")
        object.__setattr__(self, "optimizer", find_optimizer(self.optimizer))
        object.__setattr__(self, "precision", find_precision(self.precision).name)
        object.__setattr__(self, "compile", find_compiler(self.compile))
        object.__setattr__(self, "kernels", find_kernels(self.kernels))
        if isinstance(self.checkpointing, str) and self.checkpointing not in (SELECTIVE, OPERATORS, HALF):
            raise UnknownName("checkpointing", self.checkpointing, [SELECTIVE, OPERATORS, HALF])
        self._check_memory_options()
        if self.eager_loss and not self.is_compiled:
            raise BadInput("`eager_loss` leaves the loss out of what is compiled: give a compiler (`compile`)")
        for option, value, choices in (
            ("mode", self.mode, MODES),
            ("attention", self.attention, ATTENTIONS),
            ("update style", self.update_style, STYLES),
            ("offload", self.offload, OFFLOADS),
        ):
            if value not in choices:
                raise UnknownName(option, value, choices)

    def _check_memory_options(self) -> None:
        if self.loss_chunks < 1:
            raise BadInput(f"`loss_chunks` must be at least 1, got {self.loss_chunks}")
        if self.expert_capacity is not None and not self.expert_capacity > 0:
            raise BadInput(f"`expert_capacity` must be a factor above 0, got {self.expert_capacity}")
        if not self.expert_imbalance >= 1:
            raise BadInput(f"`expert_imbalance` must be a factor of at least 1, got {self.expert_imbalance}")
        if self.expert_capacity is not None and self.expert_imbalance > 1:
            raise BadInput("with `expert_capacity` every expert has as many rows: leave `expert_imbalance` out")
        if not self.update_in_backward:
            return
        if self.accumulate > 1:
            raise BadInput("`update_in_backward` frees gradients at once: they cannot be accumulated")
        if self.precision_rules.method in (Method.MASTERED, Method.QUANTISED):
            raise BadInput(f"`update_in_backward` is not modelled in {self.precision}, which updates master weights")

    @property
    def precision_rules(self) -> Precision:
        """The precision by its name."""
        return PRECISIONS[self.precision]

    @property
    def precision_label(self) -> str:
        """The name that tables of measured steps list it by: fp32 of a device without TF32 is fp32,
        and autocast is autocast however weights are stored."""
        return _LABELS.get(self.precision, self.precision)

    @property
    def base_bits(self) -> int | None:
        """Bits of a value of the frozen base; None where it is not quantised."""
        return BASES[self.quantize].bits if self.quantize in BASES else None

    @property
    def widens_rest(self) -> bool:
        """Whether what is not quantised of a base becomes float32, whatever it is loaded in."""
        is_single = self.precision_rules.weights.name == SINGLE
        return is_single and self.quantize in BASES and BASES[self.quantize].casts_rest

    @property
    def is_compiled(self) -> bool:
        """Whether a compiler fuses its ops."""
        return self.compile != EAGER

    def eager(self) -> "Recipe":
        """The same recipe without a compiler."""
        return replace(self, compile=EAGER, eager_loss=False)

    @property
    def has_kernels(self) -> bool:
        """Whether a library's kernels run instead of PyTorch's; a compiler fuses theirs, too."""
        return self.kernels != NO_KERNELS and not self.is_compiled

    def holding_more(self) -> "Iterator[Recipe]":
        """The same recipe without checkpointing, and with everything trained: each holds at least as much."""
        if self.checkpointing:
            yield replace(self, checkpointing=False)
        if self.freeze and (self.lora or self.quantize == NOT_QUANTISED):
            yield replace(self, freeze=())

    def at(self, batch: int) -> "Recipe":
        """The same recipe at another batch size."""
        return replace(self, batch=batch)
