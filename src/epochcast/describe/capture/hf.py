"""Hugging Face models from a configuration alone: `hf:config.json`, or `hf:BertConfig(num_hidden_layers=4)`.

The text in brackets is parsed as literals, never evaluated; the network is built on `meta` without weights, for the
task its configuration names (or the one it is pretrained for), and computes its own loss from labels. LoRA (Hu et al.
2021) freezes the network and adds W + (α/r)·BA beside the chosen linear layers.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epochcast.base.documents import parse_json, read_text
from epochcast.describe.capture.capture_cache import CachedModel, about
from epochcast.describe.capture.hf_inputs import Fed, inputs_of, is_answering, without_unknown
from epochcast.describe.capture.hf_tasks import network_class, task_of, task_of_classes
from epochcast.describe.capture.hf_windows import say_windows
from epochcast.describe.capture.model import Model
from epochcast.describe.capture.model_reference import CONFIG, ModelReference
from epochcast.describe.capture.sample_contents import PLAIN, SampleContents
from epochcast.describe.capture.workload import Workload
from epochcast.describe.graph.quantised_base import EIGHT, FOUR
from epochcast.errors import BadInput, MissingExtra, UnknownName

if TYPE_CHECKING:
    from epochcast.describe.capture.torch.torch_model import TorchModel


LETTERS = 32
"""Of a CTC model that is not fine-tuned yet: as many as wav2vec2 has for English."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What follows `hf:`: a file, or a configuration class with overrides."""

    path: str = ""
    config: str = ""
    overrides: tuple[tuple[str, Any], ...] = ()


def parse_reference(text: str) -> Reference:
    """`hf:config.json` or `hf:Name(key=literal, …)`."""
    body = text.removeprefix(f"{CONFIG}:").strip()
    if body.endswith(".json") or _is_folder(body):
        return Reference(path=body)
    try:
        tree = ast.parse(body, mode="eval").body
    except SyntaxError:
        raise BadInput(
            f"{text!r} is neither a config.json nor a configuration like BertConfig(num_hidden_layers=4)"
        ) from None
    if isinstance(tree, ast.Name):
        return Reference(config=tree.id)
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name) or tree.args:
        raise BadInput(f"{text!r} is not a configuration; write it like hf:BertConfig(num_hidden_layers=4)")
    overrides = []
    for keyword in tree.keywords:
        try:
            if keyword.arg is None:
                raise ValueError
            overrides.append((keyword.arg, ast.literal_eval(keyword.value)))
        except ValueError:
            raise BadInput(
                f"{ast.unparse(keyword)} in {text!r} is not a plain value: numbers, texts, lists only"
            ) from None
    return Reference(config=tree.func.id, overrides=tuple(overrides))


def _is_folder(text: str) -> bool:
    try:
        return Path(text).is_dir()
    except OSError:  # a configuration with many overrides is longer than a file's name may be
        return False


def load_hf(
    reference: str,
    input_shape: tuple[int, ...] | None = None,
    contents: SampleContents = PLAIN,
    **options: Any,
) -> Model:
    """The model of a configuration; its captures are cached on disk."""
    text = str(ModelReference(CONFIG, reference.removeprefix(f"{CONFIG}:")))
    parse_reference(text)
    facts = about(text, input_shape, {**options, "contents": contents})
    return CachedModel(text, facts, lambda: hf_model(text, input_shape, contents=contents, **options))


def hf_model(
    reference: str,
    input_shape: tuple[int, ...] | None = None,
    *,
    inputs: Any = None,
    contents: SampleContents = PLAIN,
    lora_rank: int | None = None,
    lora_targets: Sequence[str] = (),
    **options: Any,
) -> "TorchModel":
    """The model of a configuration; `input_shape` is (tokens,) or (channels, height, width)."""
    transformers = _transformers()
    config = _configuration(transformers, parse_reference(reference), reference)
    model = _from_config(config, Workload(config, inputs, name=reference), input_shape, contents, **options)
    if lora_rank is not None:
        from epochcast.describe.capture.torch.module_lora import with_lora

        with_lora(model.module, lora_rank, lora_targets)
    return model


def from_hugging_face(workload: Workload, input_shape: tuple[int, ...] | None = None, **options: Any) -> "TorchModel":
    """The model of a live configuration, model class or model, also one that PEFT has wrapped. Options are those of
    `from_workload`.
    """
    transformers = _transformers()
    model = workload.model
    if isinstance(model, type):
        model = _of_class(transformers, model)
    if isinstance(model, transformers.PretrainedConfig):
        return _from_config(model, workload, input_shape)
    return _from_module(model, workload, input_shape, **options)


def _of_class(transformers: Any, kind: type) -> Any:
    """A class with its default configuration; a class of configurations as that configuration."""
    if issubclass(kind, transformers.PretrainedConfig):
        return kind()
    config_class = getattr(kind, "config_class", None)
    if config_class is None or not issubclass(kind, transformers.PreTrainedModel):
        raise BadInput(f"the class {kind.__name__} has no configuration of its own: give a configuration or a model")
    from epochcast.describe.capture.torch.meta_modules import constructed

    return constructed(lambda: kind(config_class()), kind.__name__)


def _from_config(
    config: Any,
    workload: Workload,
    input_shape: tuple[int, ...] | None,
    contents: SampleContents = PLAIN,
    **options: Any,
) -> "TorchModel":
    """Built for the task that the configuration names. Code that it points at (`auto_map`) is never followed."""
    transformers = _transformers()
    from epochcast.describe.capture.hf_towers import as_one_batch, tower_name
    from epochcast.describe.capture.torch.meta_modules import constructed
    from epochcast.describe.capture.torch.small_values import Values
    from epochcast.describe.capture.torch.user_workload import from_workload

    config = _as_captured(deepcopy(config))
    task = task_of(transformers, config)
    auto = network_class(transformers, config, task)
    text = getattr(config, "text_config", None)
    for part in (config if task in ("Seq2SeqLM", "SpeechSeq2Seq") else None, text if is_answering(config) else None):
        if part is not None:
            _with_first_token(part)
    if task == "CTC" and getattr(config, "vocab_size", 0) is None:
        config.vocab_size = LETTERS
    label = workload.name or type(config).__name__
    values = Values()
    module = constructed(lambda: auto.from_config(config, trust_remote_code=False), label, values)
    say_windows(module)
    example, fed = _fed(config, task, module, input_shape, workload, contents, values)
    if fed.images is not None:
        as_one_batch(module, fed.images)
    model = from_workload(
        replace(workload, model=module, inputs=example), label, None, values, in_place=True, around=_quiet, **options
    )
    packed = model.packed or _packed(model.module, config)
    tower = "" if fed.images is None else tower_name(model.module)
    return replace(
        model, units_per_sample=fed.length, notes=fed.notes, packed=packed, contents=fed.contents, tower=tower
    )


def _with_first_token(config: Any) -> None:
    """A decoder begins with a token that old configurations leave out."""
    for name in ("pad_token_id", "decoder_start_token_id"):
        if getattr(config, name, None) is None:
            setattr(config, name, getattr(config, "pad_token_id", None) or 0)


def _as_captured(config: Any) -> Any:
    """Without what depends on chance: layers that are dropped, and masks over time (SpecAugment), which cost little."""
    for name, value in (("use_cache", False), ("apply_spec_augment", False), ("layerdrop", 0.0)):
        if name == "use_cache" or hasattr(config, name):
            setattr(config, name, value)
    if getattr(config, "image_token_id", 0) is None:  # BLIP-2 before 2024; any that is not the text's
        config.image_token_id = 1
    return config


def _from_module(module: Any, workload: Workload, input_shape: tuple[int, ...] | None, **options: Any) -> "TorchModel":
    """A live model; its class determines the task."""
    from epochcast.describe.capture.torch.user_workload import from_workload

    transformers = _transformers()
    inner = module.get_base_model() if hasattr(module, "get_base_model") else module
    config = inner.config
    task = task_of_classes(transformers, config, [type(inner).__name__]) or task_of(transformers, config)
    example, fed = _fed(config, task, inner, input_shape, workload, PLAIN, options.get("values"))
    options = {"around": _quiet, **options}
    model = from_workload(replace(workload, model=module, inputs=example), workload.name, None, **options)
    say_windows(model.module)
    packed = model.packed or _packed(model.module, config)
    notes = (*model.notes, *fed.notes)
    return replace(model, units_per_sample=fed.length, notes=notes, packed=packed, contents=fed.contents)


def _fed(
    config: Any,
    task: str,
    module: Any,
    input_shape: tuple[int, ...] | None,
    workload: Workload,
    contents: SampleContents,
    values: Any,
) -> tuple[Any, Fed]:
    """The inputs that were given, else those of the task."""
    from epochcast.describe.capture.torch.example_arguments import Example

    if workload.inputs is None or input_shape is not None:
        fed = inputs_of(config, task, module, input_shape, contents)
        move = (lambda tensor: tensor) if values is None else values.moved
        kwargs = {**{name: move(tensor) for name, tensor in fed.values.items()}, **fed.kwargs}
        kwargs = {
            name: kwargs[name] for name in sorted(kwargs, key=lambda name: name == "labels")
        }  # what it reads first
        return Example((), without_unknown(kwargs, module)), fed
    inputs = workload.inputs() if callable(workload.inputs) else workload.inputs
    tokens = inputs.get("input_ids") if isinstance(inputs, Mapping) else None
    return inputs, Fed({}, int(tokens.shape[1]) if tokens is not None and tokens.dim() > 1 else 1)


def _packed(module: Any, config: Any) -> tuple[tuple[str, int], ...]:
    """Weights that will be loaded in four or eight bits (bitsandbytes), where the configuration says so.

    Those of linear layers but the last, which stays as it is, and but adapters: trained layers beside frozen ones.
    """
    import torch

    quantization = getattr(config, "quantization_config", None)
    flags = quantization if isinstance(quantization, Mapping) else vars(quantization or object)
    bits = FOUR if flags.get("load_in_4bit", flags.get("_load_in_4bit")) else EIGHT
    if bits == EIGHT and not flags.get("load_in_8bit", flags.get("_load_in_8bit")):
        return ()
    inner = module.get_base_model() if hasattr(module, "get_base_model") else module
    head = inner.get_output_embeddings()
    has_adapters = any(not parameter.requires_grad for parameter in module.parameters())
    return tuple(
        (f"{name}.weight", bits)
        for name, part in module.named_modules()
        if isinstance(part, torch.nn.Linear) and part is not head and not (has_adapters and part.weight.requires_grad)
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what transformers logs about losses and generation, which do not matter here. Used while `ALONE`."""
    from transformers.utils import logging as transformers_logging

    logging: Any = transformers_logging
    verbosity = logging.get_verbosity()
    try:
        logging.set_verbosity_error()
        yield
    finally:
        logging.set_verbosity(verbosity)


def _transformers() -> Any:
    try:
        import torch  # noqa: F401
        import transformers
    except ModuleNotFoundError as absent:
        raise MissingExtra("hf", absent.name) from None
    from epochcast.describe.capture.torch.torchvision_shim import prepare_torchvision

    prepare_torchvision()  # image models import it
    return transformers


def _configuration(transformers: Any, reference: Reference, text: str) -> Any:
    if reference.path:
        return _from_file(transformers, Path(reference.path))
    kind = getattr(transformers, reference.config, None)
    if kind is None or not isinstance(kind, type) or not issubclass(kind, transformers.PretrainedConfig):
        class_names = [type_.__name__ for type_ in _config_classes(transformers)]
        raise UnknownName("Hugging Face configuration", reference.config, class_names)
    try:
        return kind(**dict(reference.overrides))
    except Exception as problem:
        raise BadInput(f"{text} is not a valid configuration: {problem}") from problem


def _config_classes(transformers: Any) -> list[type]:
    from transformers.models.auto import configuration_auto

    names: Any = configuration_auto
    members = (getattr(transformers, name, None) for name in sorted(set(names.CONFIG_MAPPING_NAMES.values())))
    return [c for c in members if isinstance(c, type)]


def _from_file(transformers: Any, path: Path) -> Any:
    file = path / "config.json" if path.is_dir() else path
    if not file.exists():
        raise BadInput(f"there is no file {str(file)!r}")
    values = parse_json(read_text(file), str(file))
    kind = values.pop("model_type", None) if isinstance(values, dict) else None
    if isinstance(values, dict):
        values.pop("auto_map", None)  # code beside the weights, which is never run
    if kind is None:
        raise BadInput(f"{file} has no model_type, so it is not a Hugging Face configuration")
    model_types = transformers.models.auto.configuration_auto.CONFIG_MAPPING_NAMES
    if not isinstance(kind, str) or kind not in model_types:
        near = UnknownName("model_type", str(kind), model_types)
        raise BadInput(f"{file}: {near}; code beside it (auto_map) is never run")
    try:
        return transformers.AutoConfig.for_model(kind, **values)
    except Exception as problem:
        raise BadInput(f"{file} is not a valid configuration: {str(problem).splitlines()[0]}") from problem
