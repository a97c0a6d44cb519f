"""Hugging Face models from a configuration alone: `hf:config.json`, or `hf:BertConfig(num_hidden_layers=4)`.

The text in brackets is parsed as literals, never evaluated; the network is built on `meta` without weights, for the
task its configuration names (or the one it is pretrained for), and computes its own loss from labels. LoRA (Hu et al.
2021) freezes the network and adds W + (α/r)·BA beside the chosen linear layers.
"""

import ast
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epochcast.capture.cache import CachedModel, about
from epochcast.capture.model import Model
from epochcast.errors import BadInput, MissingExtra, UnknownName

if TYPE_CHECKING:
    from epochcast.capture.torch.model import TorchModel

LONGEST_GUESS = 512
"""Tokens per sample for models that accept longer texts, where `input_shape` is not given."""

# What a family is pretrained for, where its configuration does not name an architecture.
_FAMILIES: Mapping[str, str] = {
    "MaskedLM": "bert roberta distilbert albert electra deberta deberta-v2 xlm-roberta camembert modernbert mpnet",
    "Seq2SeqLM": "t5 mt5 bart mbart pegasus marian longt5 blenderbot led",
    "ImageClassification": "vit deit beit swin swinv2 convnext convnextv2 resnet dinov2 mobilenet_v2 segformer regnet",
    "SpeechSeq2Seq": "whisper speech_to_text",
}
_TASKS = {family: task for task, families in _FAMILIES.items() for family in families.split()}
_CLASSES = {
    "MaskedLM": "AutoModelForMaskedLM",
    "CausalLM": "AutoModelForCausalLM",
    "Seq2SeqLM": "AutoModelForSeq2SeqLM",
    "ImageClassification": "AutoModelForImageClassification",
    "SpeechSeq2Seq": "AutoModelForSpeechSeq2Seq",
    "SequenceClassification": "AutoModelForSequenceClassification",
    "TokenClassification": "AutoModelForTokenClassification",
    "QuestionAnswering": "AutoModelForQuestionAnswering",
}
_SUFFIXES = {
    "ForMaskedLM": "MaskedLM",
    "ForCausalLM": "CausalLM",
    "LMHeadModel": "CausalLM",
    "ForConditionalGeneration": "Seq2SeqLM",
    "ForImageClassification": "ImageClassification",
    "ForSequenceClassification": "SequenceClassification",
    "ForTokenClassification": "TokenClassification",
    "ForQuestionAnswering": "QuestionAnswering",
}


@dataclass(frozen=True, slots=True)
class Reference:
    """What follows `hf:`: a file, or a configuration class with overrides."""

    path: str = ""
    config: str = ""
    overrides: tuple[tuple[str, Any], ...] = ()


def parse_reference(text: str) -> Reference:
    """`hf:config.json` or `hf:Name(key=literal, …)`."""
    body = text.removeprefix("hf:").strip()
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


def load_hf(reference: str, input_shape: tuple[int, ...] | None = None, **options: Any) -> Model:
    """The model of a configuration; its captures are cached on disk."""
    text = f"hf:{reference.removeprefix('hf:')}"
    parse_reference(text)
    return CachedModel(text, about(text, input_shape, options), lambda: hf_model(text, input_shape, **options))


def hf_model(
    reference: str,
    input_shape: tuple[int, ...] | None = None,
    *,
    lora_rank: int | None = None,
    lora_targets: Sequence[str] = (),
    **options: Any,
) -> "TorchModel":
    """The model of a configuration; `input_shape` is (tokens,) or (channels, height, width)."""
    transformers = _transformers()
    from epochcast.capture.torch.construct import constructed, on_meta
    from epochcast.capture.torch.model import TorchModel

    config = _configuration(transformers, parse_reference(reference), reference)
    task = _task(config)
    auto = getattr(transformers, _CLASSES[task])
    config.use_cache = False
    if task == "Seq2SeqLM" and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = getattr(config, "pad_token_id", None) or 0
    module = on_meta(constructed(lambda: auto.from_config(config), reference))
    if lora_rank is not None:
        from epochcast.capture.torch.lora import with_lora

        with_lora(module, lora_rank, lora_targets)
    example, length, notes = _example(config, task, input_shape)
    return TorchModel(reference, module, example, units_per_sample=length, notes=notes, around=_unpadded, **options)


@contextmanager
def _unpadded() -> Iterator[None]:
    """Without transformers' checks whether a mask hides anything: they read values, which `meta` tensors do not have.

    The examples hold one text per row and no padding; the functions of masking_utils return what they would for these.
    """
    from transformers import masking_utils
    from transformers.utils import logging as transformers_logging

    logging: Any = transformers_logging

    def without_padding(original: Callable[..., Any]) -> Callable[..., Any]:
        return lambda padding_mask, *arguments, **options: original(None, *arguments, **options)

    replacements: dict[str, Callable[..., Any]] = {"find_packed_sequence_indices": lambda position_ids: None}
    for name in ("_ignore_causal_mask_sdpa", "_ignore_bidirectional_mask_sdpa"):
        if hasattr(masking_utils, name):
            replacements[name] = without_padding(getattr(masking_utils, name))
    originals = {name: getattr(masking_utils, name) for name in replacements if hasattr(masking_utils, name)}
    verbosity = logging.get_verbosity()
    try:
        logging.set_verbosity_error()  # it warns about losses and generation, which do not matter here
        for name in originals:
            setattr(masking_utils, name, replacements[name])
        yield
    finally:
        logging.set_verbosity(verbosity)
        for name, original in originals.items():
            setattr(masking_utils, name, original)


def _transformers() -> Any:
    try:
        import torch  # noqa: F401
        import transformers
    except ModuleNotFoundError as absent:
        raise MissingExtra("hf", absent.name) from None
    from epochcast.capture.torch.shim import import_torchvision

    with suppress(MissingExtra):
        import_torchvision()  # image models import it; without the shim that fails
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
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except OSError:
        raise BadInput(f"there is no file {str(file)!r}") from None
    except ValueError as problem:
        raise BadInput(f"{file} is not JSON: {problem}") from None
    kind = values.pop("model_type", None) if isinstance(values, dict) else None
    if kind is None:
        raise BadInput(f"{file} has no model_type, so it is not a Hugging Face configuration")
    try:
        return transformers.AutoConfig.for_model(kind, **values)
    except Exception as problem:
        raise BadInput(f"{file} is not a valid configuration: {str(problem).splitlines()[0]}") from problem


def _task(config: Any) -> str:
    """By the architecture the configuration names, else by its family; decoders are causal language models."""
    if config.model_type in ("whisper", "speech_to_text"):
        return "SpeechSeq2Seq"
    for architecture in getattr(config, "architectures", None) or ():
        for suffix, task in _SUFFIXES.items():
            if architecture.endswith(suffix):
                return task
    if getattr(config, "is_encoder_decoder", False):
        return "Seq2SeqLM"
    return _TASKS.get(config.model_type, "CausalLM")


def _example(config: Any, task: str, shape: tuple[int, ...] | None) -> tuple[Any, int, tuple[str, ...]]:
    """Inputs and labels for a task, how many units a sample has, and what was assumed."""
    import torch

    from epochcast.capture.torch.example import Example

    def meta_tensor(*sizes: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        return torch.empty((2, *sizes), dtype=dtype, device="meta")

    if task == "ImageClassification":
        size = getattr(config, "image_size", 224) or 224
        height, width = (size, size) if isinstance(size, int) else tuple(size)
        pixels = shape or (getattr(config, "num_channels", 3), height, width)
        return Example((), {"pixel_values": meta_tensor(*pixels, dtype=torch.float32), "labels": meta_tensor()}), 1, ()
    if task == "SpeechSeq2Seq":
        frames = 2 * config.max_source_positions
        length = shape[0] if shape else min(config.max_target_positions, LONGEST_GUESS)
        features = meta_tensor(config.num_mel_bins, frames, dtype=torch.float32)
        return Example((), {"input_features": features, "labels": meta_tensor(length)}), length, ()
    if shape is not None and len(shape) != 1:
        raise BadInput(
            f"`input_shape` of a text model is a number of tokens, such as 128, got {'x'.join(map(str, shape))}"
        )
    longest = next(
        (n for n in (getattr(config, k, None) for k in _LENGTHS) if isinstance(n, int) and n > 0), LONGEST_GUESS
    )
    if shape is not None and shape[0] > longest and hasattr(config, "max_position_embeddings"):
        raise BadInput(f"{config.model_type} takes at most {longest} tokens, got {shape[0]}")
    length = shape[0] if shape else min(longest, LONGEST_GUESS)
    notes = () if shape else (f"{length} tokens per sample are assumed; give the input size to change that",)
    if task == "QuestionAnswering":  # where in the text the answer begins and ends
        places = {"start_positions": meta_tensor(), "end_positions": meta_tensor()}
        return Example((), {"input_ids": meta_tensor(length), **places}), length, notes
    labels = meta_tensor() if task == "SequenceClassification" else meta_tensor(length)
    return Example((), {"input_ids": meta_tensor(length), "labels": labels}), length, notes


_LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
