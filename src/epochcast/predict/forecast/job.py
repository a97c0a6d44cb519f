"""A job: what is trained and how, whatever it runs on. The one question every verb asks.

    >>> job = Job("resnet50", batch=64, precision="amp", dataset="imagenet-1k", epochs=90)
    >>> job.precision, job.known_dataset.training_samples
    ('amp_fp16', 1281167)
    >>> Job.from_dict(job.as_dict()) == job
    True

Where it runs is a `Placement` (or a `Where`, by names). A job has one batch: `batch` of each GPU and pass, or
`global_batch` of a whole step over all GPUs and accumulated passes. Without one it can be planned and advised on, not
forecast.
"""

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from epochcast.base.caching import remembered
from epochcast.base.options import Option, check_fields, check_names, option, options_of, required
from epochcast.base.record import HIDDEN
from epochcast.describe.capture.config.live_objects import optimizer_name, precision_name
from epochcast.errors import BadInput, UnknownName
from epochcast.predict.forecast.adapter_options import AdapterOptions
from epochcast.predict.forecast.post_training_options import PostTrainingOptions
from epochcast.predict.forecast.sample_options import SampleOptions
from epochcast.units import parse_count, parse_seconds_per_sample, parse_shape, parse_uneven

if TYPE_CHECKING:
    from epochcast.describe.datasets import Dataset
    from epochcast.describe.graph.recipe import Recipe
    from epochcast.hardware.device import Device
    from epochcast.predict.forecast.lengths import Lengths

FRAMEWORKS = ("pytorch", "tensorflow")
AUTO = "auto"
"""The precision or optimizer that networks of this kind are usually trained with (`defaults`)."""
ATTENTIONS = (AUTO, "flash", "fused_softmax", "eager")
PLAIN: Mapping[str, str] = {"precision": "fp32", "optimizer": "sgd"}
"""What `auto` means for networks that are no language models: what a script that says nothing does."""
# The PyTorch that came out when bitsandbytes stopped keeping the inputs of its products (July 2024).
_KEPT_INPUTS_UNTIL = (2, 4)
# torch.utils.data.DataLoader's own default.
PREFETCH = 2
# Beyond anything that is trained; what follows from larger numbers does not fit in 64 bits.
MOST_BATCH, MOST, MOST_TOKENS = 10**7, 10**15, 10**18
# A day for one sample, and more processors and workers than a node has.
MOST_LOADER_SECONDS, MOST_CPUS, MOST_WORKERS, MOST_PREFETCH = 86_400, 10_000, 512, 512

_model = partial(option, group="model")
_recipe = partial(option, group="recipe")
_data = partial(option, group="data")
_loader = partial(option, group="loader")


def _parse_hooks(text: str) -> float:
    from epochcast.predict.cost.hosts import parse_hooks

    return parse_hooks(text)


_NO_OPTIONS = frozenset({"assumed"})
"""Fields of a job that nobody types."""


@dataclass(frozen=True)
class Job(SampleOptions, AdapterOptions, PostTrainingOptions):
    """What is trained and how; frozen, and checked when it is made. A live `nn.Module` or Keras model is kept as it is.
    To write such a job down, say under which `reference` (`file.py:factory`) the same model can be made again; its
    `fingerprint` then tells whether it is still the same.

    >>> import epochcast as ec
    >>> ec.Job("resnet50", batch=64, dataset="imagenet-1k", epochs=90).known_dataset.training_samples
    1281167
    """

    json_from: ClassVar[Mapping[str, str]] = {"model": "written_model", "fingerprint": "written_fingerprint"}

    model: object = required(
        "A zoo name, timm:NAME, torchvision:NAME, hf:CONFIG.json, file.py:factory, .onnx, .keras, .toml, .json",
        group="model",
    )
    batch: int | None = _recipe(
        None, "Samples per GPU and step.", unit="samples", least=1, most=MOST_BATCH, example="64"
    )
    global_batch: int | None = _recipe(
        None,
        "Samples per step over all GPUs, instead of a batch per GPU.",
        unit="samples",
        least=1,
        most=MOST,
        example="1024",
    )
    input_shape: tuple[int, ...] | None = _model(
        None,
        "Shape of one sample, like 3x224x224 (tokens: 512).",
        parse=parse_shape,
        flag="--input",
        example="(3, 224, 224)",
    )
    aux: bool = _model(True, "Include auxiliary heads, if the network has any.")
    precision: str = _recipe(
        AUTO,
        "fp32 (PyTorch's: TF32 convolutions on Ampere and newer), fp32_strict, tf32, amp (amp_fp16), amp_bf16, fp16, "
        "bf16, fp64, fp8, mxfp8, nvfp4, or auto: mixed precision for language models (bf16 where the GPU has it), "
        "fp32 for other networks.",
        named=precision_name,
    )
    weights: str | None = _recipe(
        None,
        "Storage of the weights: fp32 (PyTorch AMP), bf16 (pure; with amp: loaded in bf16, adapters in fp32), "
        "bf16+master (DeepSpeed), bf16+master+fp32grad (Megatron-LM), or the same with fp16 [default: follows the "
        "precision].",
        example="'bf16+master'",
    )
    optimizer: str = _recipe(
        AUTO,
        "sgd, momentum, nesterov, adam, adamw, rmsprop, adagrad, adadelta, lamb, lion, adafactor, muon; 8-bit: "
        "adam8bit, adamw8bit, lion8bit; paged_adamw, paged_adamw8bit, paged_lion8bit and so on; or auto: adamw for "
        "language models, sgd for other networks.",
        named=optimizer_name,
    )
    mode: str = _recipe("training", "training, forward, forward_backward or generate.")
    accumulate: int = _recipe(1, "Forward and backward passes (micro-batches) per update.", least=1, most=MOST_BATCH)
    augment: int = _recipe(1, "Augmented copies of each sample in a step.", least=1, most=MOST_BATCH)
    uneven: float = _recipe(
        0.0,
        "Batch-to-batch variation of work (fraction), like 0.35, or a range of image sides drawn per batch, "
        "like 320..608: several GPUs wait for the largest.",
        least=0,
        parse=parse_uneven,
    )
    freeze: tuple[str, ...] = _recipe((), "Glob of parameters not trained; may be repeated.", example="['layer1.*']")
    checkpointing: bool | str = _recipe(
        False,
        "Activation checkpointing: full (recompute every block), half (every second block), operators (keep attention "
        "and every second product, as torchtitan), selective (recompute attention scores, as Megatron-LM) or none.",
        words={"full": True, "half": "half", "operators": "operators", "selective": "selective", "none": False},
    )
    offload_activations: bool = _recipe(False, "Keep saved activations in host memory between forward and backward.")
    loss_chunks: int = _recipe(
        1, "Compute head and cross entropy in so many chunks of tokens (Liger, torchtune).", least=1, most=4096
    )
    sequence_parallel: bool = _recipe(
        False, "With tensor parallelism, shard norm and dropout activations along the sequence."
    )
    keep_gathered: bool = _recipe(
        False,
        "With sequence_parallel, keep gathered activations for backward (torchtitan, nanotron) instead of gathering "
        "them again (Megatron-LM).",
    )
    attention: str = _recipe(
        "auto",
        "flash (one fused kernel), fused_softmax (scores in memory, one kernel scales, masks and normalises them: "
        "Megatron-LM before flash attention), eager (scores in memory after every step), or auto: before PyTorch 2.0 "
        "fused_softmax for decoder: models and eager for others; eager in TensorFlow and for capped scores (Gemma 2).",
    )
    padding_mask: bool = _recipe(
        False, "Batches are padded: fused attention reads a mask, a bias per layer that backward keeps."
    )
    channels_last: bool | None = _recipe(None, "NHWC memory layout.")
    update_style: str = _recipe(
        "foreach", "foreach, fused or loop (a kernel per tensor, temporaries of one tensor at a time)."
    )
    update_in_backward: bool = _recipe(
        False, "Update each parameter as soon as its gradient is ready, and free the gradient (one GPU)."
    )
    ema: bool = _recipe(False, "Keep a moving average of the trained weights on the GPU.")
    compile: str = _recipe(
        "none",
        "none (eager), inductor (torch.compile), reduce-overhead (with CUDA graphs), xla, or vendor: everything "
        "fused, as in vendors' benchmark submissions.",
    )
    eager_loss: bool = _recipe(False, "With compile, compile the model alone and leave the loss eager.")
    expert_capacity: float | None = _recipe(
        None,
        "Tokens per expert by balanced routing, padded or dropped, like 1.25 (Megatron-LM's capacity factor) [default: "
        "none dropped].",
        above=0,
    )
    expert_imbalance: float = _recipe(
        1.0, "With expert parallelism, tokens of the busiest rank by the mean, like 1.2 [default: balanced].", least=1
    )
    offload: str = _recipe(
        "none",
        "Keep in host memory: optimizer (state, updated by the CPU) or parameters (and the optimizer state); for "
        "zero1, zero2, zero3 or one GPU.",
    )
    empty_cache_steps: int | None = _recipe(
        None, "Steps between calls of torch.cuda.empty_cache; matters where lengths vary [default: never].", least=1
    )
    keep_gradients: bool = _recipe(False, "Zero gradients between steps instead of freeing them.")
    lora: int = _recipe(0, "LoRA rank: train low-rank adapters, freeze the network.", least=0)
    lora_targets: tuple[str, ...] = _recipe(
        (),
        "Layers with LoRA adapters, by their last name, like q_proj, or all-linear; may be repeated.",
        flag="--lora-target",
        example="['q_proj']",
    )
    lora_dropout: float = _recipe(0.05, "Dropout of the LoRA adapters (fraction); 0 keeps no masks.", least=0, most=1)
    four_bit: bool = _recipe(
        False,
        "QLoRA as PEFT runs it: frozen linear layers in 4 bits (bitsandbytes NF4), everything else in fp32 under "
        "autocast; `weights` bf16 keeps the rest in bf16.",
    )
    eight_bit: bool = _recipe(False, "The same with frozen linear layers in 8 bits (LLM.int8()).")
    quantize: str = _recipe(
        "none",
        "Format of a frozen base: nf4 (as --four-bit), nf4-dq (double quantisation), int8 (as --eight-bit), w8 (8-bit "
        "weights alone: quanto, torchao, SDNQ), gptq, awq.",
    )
    with_loss: bool = _recipe(True, "Include the loss in the step.", flag=None)
    dataset: str | None = _data(
        None, "A name from `epochcast datasets`: sets the samples, or for a text corpus the tokens."
    )
    samples: int | None = _data(
        None,
        "Samples per epoch, like 52k.",
        unit="samples",
        least=1,
        most=MOST,
        parse=parse_count,
        example="50000",
    )
    tokens: int | None = _data(
        None,
        "Training tokens of a language model, like 300B, instead of samples and epochs.",
        unit="tokens",
        least=1,
        most=MOST_TOKENS,
        parse=parse_count,
        example="300000000000",
    )
    lengths: str | None = _data(
        None,
        "Distribution of text lengths: mean=180,max=512,padded (each batch to its longest), bucketed (by length), "
        "packed or full; or file=lengths.txt or quantiles=12/60/512 instead of mean.",
    )
    packing: bool = _data(
        False, "Join texts into sequences of the maximum length: fewer sequences by the mean length (`lengths`)."
    )
    epochs: int = _data(1, "Passes over the data.", least=1, most=MOST_BATCH)
    validation_samples: int | None = _data(
        None,
        "Validation samples after each epoch [default: those of the dataset].",
        unit="samples",
        least=0,
        most=MOST,
        parse=parse_count,
    )
    checkpoints_per_epoch: float = _data(1.0, "Checkpoints written per epoch.", least=0)
    loader_seconds: float | None = _loader(
        None,
        "Seconds one loader worker needs for one sample, like 8ms; for a batch with its size: 0.5s/64.",
        unit="seconds",
        above=0,
        most=MOST_LOADER_SECONDS,
        parse=parse_seconds_per_sample,
    )
    workers: int | None = _loader(
        None, "Data loader workers per GPU [default: one per idle CPU].", least=0, most=MOST_WORKERS
    )
    prefetch: int = _loader(PREFETCH, "Batches each worker prefetches.", least=1, most=MOST_PREFETCH)
    cpus: float | None = _loader(None, "CPUs of a node; each GPU occupies one.", above=0, most=MOST_CPUS)
    framework: str = option("pytorch", "pytorch or tensorflow (Keras).", group="framework")
    hook_seconds: float = option(
        0.0,
        "Host time that framework hooks add per parameter tensor, like 0.5ms, or a known name: adaptdl.",
        unit="seconds",
        least=0,
        most=1,
        parse=_parse_hooks,
        group="framework",
    )
    framework_version: str | None = option(None, "Framework version, like 1.13 [default: latest].", group="framework")
    reference: str | None = _model(
        None, "file.py:factory that makes a model given as a live object.", flag=None, metadata=HIDDEN
    )
    fingerprint: str | None = _model(None, "Fingerprint of the model when the job was saved.", flag=None)
    assumed: tuple[str, ...] = field(default=(), repr=False, metadata=HIDDEN)
    """What decides memory and nobody said: its interval is wider for that (`memory_spreads`)."""

    def __new__(cls, *arguments: object, **options: object) -> "Job":
        """Refuse a misspelt option with the near ones, before Python refuses it without."""
        check_names(options.keys() - _NO_OPTIONS, (item.name for item in JOB_OPTIONS))
        return super().__new__(cls)

    def __post_init__(self) -> None:
        check_fields(self, JOB_OPTIONS)
        self.check_post_training()
        self._check_model()
        if self.batch is not None and self.global_batch is not None:
            raise BadInput("a job has one batch: batch (of each GPU) or global_batch (of all), not both")
        if self.framework not in FRAMEWORKS:
            raise UnknownName("framework", self.framework, FRAMEWORKS)
        if self.attention not in ATTENTIONS:
            raise UnknownName("attention", self.attention, ATTENTIONS)
        if self.framework_version is not None and self.framework_numbers is None:
            raise BadInput(f"framework_version must begin like 1.13, got {self.framework_version!r}")
        recipe = self.recipe(1)  # refuses what makes no step
        if self.precision != AUTO or not recipe.precision_rules.is_single:  # half weights say the precision
            object.__setattr__(self, "precision", recipe.precision)
        if self.weights is not None:
            object.__setattr__(self, "weights", recipe.precision_rules.weights.name)
        if self.optimizer != AUTO:
            object.__setattr__(self, "optimizer", recipe.optimizer)
        object.__setattr__(self, "compile", recipe.compile)
        if self.dataset is not None:
            from epochcast.describe.datasets import find_dataset

            object.__setattr__(self, "dataset", find_dataset(self.dataset).name)
        self._check_data()

    def _check_data(self) -> None:
        """One count of the data, one length of its samples."""
        if self.tokens is not None and self.samples is not None:
            raise BadInput("a job counts its data once: samples (of an epoch) or tokens (of the training), not both")
        if self.tokens is not None and self.epochs != 1:
            raise BadInput("`tokens` counts the whole training: leave `epochs` out")
        if self.lengths is None:
            return
        if self.input_shape is not None:
            raise BadInput("`lengths` has the maximum of a sample: leave `input_shape` out")
        from epochcast.predict.forecast.lengths import lengths_in

        object.__setattr__(self, "lengths", lengths_in(self.lengths, is_packed=self.packing).text)

    def _check_model(self) -> None:
        """A reference as text, or a live model; a path is its text."""
        if isinstance(self.model, Path):
            object.__setattr__(self, "model", str(self.model))
        if self.model is None or (isinstance(self.model, str) and not self.model.strip()):
            raise BadInput("a job needs a model: a name, a file, an nn.Module or a Keras model")
        if isinstance(self.model, str):
            if self.reference is not None:
                raise BadInput(f"reference says what makes a live model; this job's is {self.model!r}")
            return
        from epochcast.describe.capture.resolve import check_live
        from epochcast.describe.capture.workload import Workload

        check_live(self.model)
        if isinstance(self.model, type) or not isinstance(self.model, Hashable):  # classes and configurations
            object.__setattr__(self, "model", Workload(self.model))

    def recipe(self, batch: int, device: "Device | None" = None) -> "Recipe":
        """How one GPU does one pass over `batch` samples, each seen in as many copies as `augment` says.

        A precision or optimizer of `auto` is what most networks take; `defaults.settled` knows better.
        """
        from epochcast.describe.graph.adapters import USUAL_RANKS, find_adapter
        from epochcast.describe.graph.compilers import COMPILERS, find_compiler
        from epochcast.describe.graph.quantised_base import joined_base, precision_of_base
        from epochcast.describe.graph.recipe import Recipe
        from epochcast.predict.forecast.attention_kernels import chosen_attention
        from epochcast.predict.forecast.single_precision import run_precision

        own = {name: getattr(self, name) for name in _recipe_fields()}
        precision = PLAIN["precision"] if self.precision == AUTO else self.precision
        is_old = self.framework_numbers is not None and self.framework_numbers < _KEPT_INPUTS_UNTIL
        own["quantize"] = joined_base(self.quantize, four_bit=self.four_bit, eight_bit=self.eight_bit, is_old=is_old)
        base_precision = precision_of_base(precision, self.weights, own["quantize"])
        own |= self.of_kernels() | self.of_generation()
        own["lora"] = self.lora or USUAL_RANKS[find_adapter(self.adapter)]
        own["precision"] = run_precision(base_precision.name, self, device)
        own["optimizer"] = PLAIN["optimizer"] if self.optimizer == AUTO else self.optimizer
        own["attention"] = chosen_attention(self, device)
        if self.update_in_backward and self.update_style == "foreach":
            own["update_style"] = "loop"
        compiler = COMPILERS.get(find_compiler(self.compile))
        if compiler is not None:
            own["update_style"] = compiler.update_style(own["update_style"])
        return Recipe(batch * self.augment, channels_last=bool(self.channels_last), **own)

    @property
    def framework_numbers(self) -> tuple[int, int] | None:
        """(major, minor) of the framework's version; None where the job does not say."""
        match = re.match(r"(\d+)\.(\d+)", self.framework_version or "")
        return None if match is None else (int(match[1]), int(match[2]))

    @property
    def has_data(self) -> bool:
        """Whether somebody said how much there is to train on; `data.data_of` says how much."""
        return any(value is not None for value in (self.samples, self.tokens, self.dataset, self.steps_per_epoch))

    @property
    def known_dataset(self) -> "Dataset | None":
        """The data set by its name."""
        from epochcast.describe.datasets import find_dataset

        return None if self.dataset is None else find_dataset(self.dataset)

    @property
    def length_distribution(self) -> "Lengths | None":
        """How long the texts are, where they differ."""
        from epochcast.predict.forecast.lengths import lengths_in

        return None if self.lengths is None else lengths_in(self.lengths)

    @property
    def longest_shape(self) -> tuple[int, ...] | None:
        """The shape of the largest sample; None: the network's own."""
        lengths = self.length_distribution
        return self.input_shape if lengths is None else (lengths.most,)

    def at_length(self, batch: int) -> "Job":
        """The job whose every sample is as long as those of a batch on average; where lengths differ, so do batches."""
        lengths = self.length_distribution
        if lengths is None:
            return self
        length, spread = lengths.computed(batch)
        return replace(self, lengths=None, input_shape=(length,), uneven=self.uneven or min(spread, 0.99))

    @property
    def written_model(self) -> str:
        """The model as files have it: a reference."""
        if isinstance(self.model, str):
            return self.model
        if self.reference is None:
            raise BadInput(
                f"a job with a live {type(self.model).__name__} cannot be written down: "
                "say what makes it, reference='file.py:factory'"
            )
        return self.reference

    @property
    def written_fingerprint(self) -> str | None:
        """Of a live model, its own."""
        if isinstance(self.model, str):
            return self.fingerprint
        from epochcast.describe.capture.model_fingerprint import fingerprint

        return fingerprint(self.model)


JOB_OPTIONS: tuple[Option, ...] = options_of(Job)


@remembered(1)
def _recipe_fields() -> tuple[str, ...]:
    """What a job and one step of it share under one name."""
    from epochcast.describe.graph.recipe import Recipe

    shared = {option.name for option in JOB_OPTIONS} & {item.name for item in fields(Recipe)}
    return tuple(sorted(shared - {"batch", "channels_last"}))
