"""Example inputs of a network of transformers by its task, and what was assumed for them.

Texts are as long as the network's pre-training had them (`text_length`), the same for a name of the zoo, a Hub id and
a configuration. Speech for Whisper is a window of 30 s whatever is said in it; its labels are as long as what is said.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any

from epochcast.describe.capture.channel_order import check_channels_first
from epochcast.describe.capture.hf_images import ImageTokens, image_tokens
from epochcast.describe.capture.hf_tasks import CONTRASTIVE
from epochcast.describe.capture.sample_contents import PLAIN, SampleContents
from epochcast.errors import BadInput

Shape = tuple[int, ...]

TEXT_TOKENS = 512
"""Tokens per sample of a model that has no longest text; of the text beside images."""
LONGEST, USUAL = 8192, 4096
"""A model of longer texts than the first was pre-trained mostly on texts of the second (Llama 3.1, Qwen2.5 and 3,
Mistral, gpt-oss, DeepSeek-V3: their reports)."""
LABEL_TOKENS = 128
"""Of 30 s of speech: 150 words a minute and 1.35 tokens per word make 100, and a batch is padded to its longest."""
AUDIO_SECONDS, SAMPLING_RATE, CHARACTERS_PER_SECOND = 12.3, 16_000, 15
"""A mean utterance of LibriSpeech (960 h in 281,241, Panayotov et al. 2015), as sampled there, as it is spelt."""
_LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")


@dataclass(frozen=True, slots=True)
class Fed:
    """The inputs of two samples, units of a sample, notes, and a line about what is in a sample. `values` are inputs
    whose values matter (`small_values`).
    """

    kwargs: Mapping[str, Any]
    length: int = 1
    notes: tuple[str, ...] = ()
    contents: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    images: ImageTokens | None = None


def inputs_of(config: Any, task: str, module: Any, shape: Shape | None, contents: SampleContents = PLAIN) -> Fed:
    """Inputs for a network by its task, else by what it takes first."""
    first = str(getattr(module, "main_input_name", ""))
    make = _OF_TASK.get(task) or _OF_INPUT.get(first, _text)
    if make is _speech and first == "input_values":
        make = _spoken_wave
    if make is _sound and "input_features" in signature(module.forward).parameters:
        make = _heard_features
    taken: dict[_Make, tuple[str, ...]] = {
        _images: ("images", "frames"),
        _speech: ("label_tokens",),
        _heard_features: _HEARD,
        _sound: _HEARD,
        _spoken_wave: _HEARD,
    }
    if make is _films:
        taken[_films] = ("frames",)
    if make is _images and is_answering(config):
        taken[_images] = ("images", "frames", "label_tokens")
    contents.check_taken(taken.get(make, ()), config.model_type)
    return _images(config, task, shape, contents, module) if make is _images else make(config, task, shape, contents)


_HEARD = ("audio_seconds", "label_tokens")


def text_length(config: Any) -> int:
    """Tokens of a text that nobody described: the longest, or what longer models are mostly trained on."""
    config = getattr(config, "text_config", None) or config
    longest = longest_text(config)
    scaling = getattr(config, "rope_scaling", None) or getattr(config, "rope_parameters", None) or {}
    original = scaling.get("original_max_position_embeddings") if isinstance(scaling, Mapping) else None
    if isinstance(original, int) and 0 < original < (longest or original + 1):
        longest = original
    if longest is None:
        return TEXT_TOKENS
    return longest if longest <= LONGEST else USUAL


def longest_text(config: Any) -> int | None:
    """The longest text that a network takes; None where its configuration names none."""
    sizes = (getattr(config, name, None) for name in _LENGTHS)
    longest = next((size for size in sizes if isinstance(size, int) and size > 0), None)
    if longest is not None and config.model_type in _POSITIONS_BEHIND_PADDING:
        return longest - (getattr(config, "pad_token_id", 1) or 0) - 1
    return longest


# RoBERTa counts positions from behind the padding token's: two of its 514 are never used.
_POSITIONS_BEHIND_PADDING = ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer", "data2vec-text")


def meta_tensor(*sizes: int, is_float: bool = False) -> Any:
    """Two samples of a shape on `meta`."""
    import torch

    return torch.empty((2, *sizes), dtype=torch.float32 if is_float else torch.int64, device="meta")


def _text(config: Any, task: str, shape: Shape | None, _: SampleContents) -> Fed:
    if shape is not None and len(shape) != 1:
        raise BadInput(
            f"`input_shape` of a text model is a number of tokens, such as 128, got {'x'.join(map(str, shape))}"
        )
    longest = longest_text(config)
    if shape is not None and longest is not None and shape[0] > longest and hasattr(config, "max_position_embeddings"):
        raise BadInput(f"{config.model_type} takes at most {longest} tokens, got {shape[0]}")
    length = shape[0] if shape else text_length(config)
    notes = () if shape else (f"{length} tokens per sample are assumed; give the input size to change that",)
    tokens = meta_tensor(length)
    if task == "QuestionAnswering":  # where in the text the answer begins and ends
        places = {"start_positions": meta_tensor(), "end_positions": meta_tensor()}
        return Fed({"input_ids": tokens, **places}, length, notes)
    labels = meta_tensor() if task == "SequenceClassification" else meta_tensor(length)
    return Fed({"input_ids": tokens, "labels": labels}, length, notes)


def _picture(config: Any, task: str, shape: Shape | None, _: SampleContents) -> Fed:
    size = getattr(config, "image_size", 224) or 224
    height, width = (size, size) if isinstance(size, int) else tuple(size)[-2:]
    channels = getattr(config, "num_channels", 3)
    if shape is not None:
        check_channels_first(shape, channels)
    pixels = shape or (channels, height, width)
    kwargs = {"pixel_values": meta_tensor(*pixels, is_float=True)}
    if task == "ImageClassification":
        kwargs["labels"] = meta_tensor()
    elif task == "SemanticSegmentation":
        kwargs["labels"] = meta_tensor(*pixels[1:])
    return Fed(kwargs, notes=_LOSSLESS.get(task, ()))


_LOSSLESS = {
    task: (f"the loss of {what} depends on what is found: the mean of the outputs stands for it",)
    for task, what in (("ObjectDetection", "a detector"), ("UniversalSegmentation", "masks"))
}


def _films(config: Any, _: str, shape: Shape | None, contents: SampleContents) -> Fed:
    """(frames, channels, height, width), as transformers has films."""
    frames = contents.frames or getattr(config, "num_frames", 16)
    size = getattr(config, "image_size", 224) or 224
    pixels = shape or (frames, getattr(config, "num_channels", 3), size, size)
    kwargs = {"pixel_values": meta_tensor(*pixels, is_float=True), "labels": meta_tensor()}
    return Fed(kwargs, contents=f"{pixels[0]} frames")


def _pairs(config: Any, _: str, shape: Shape | None, __: SampleContents) -> Fed:
    """An image and a text."""
    length = longest_text(config.text_config) or TEXT_TOKENS
    picture = _picture(config.vision_config, "", shape, PLAIN).kwargs
    return Fed({**picture, "input_ids": meta_tensor(length), "return_loss": True}, contents=f"texts of {length} tokens")


def is_answering(config: Any) -> bool:
    """Whether text with images goes into an encoder, and a decoder of its own answers (BLIP-2 with T5, Florence-2)."""
    configs = (config, getattr(config, "text_config", None))
    return any(getattr(each, "is_encoder_decoder", False) for each in configs)


def _images(config: Any, _: str, shape: Shape | None, contents: SampleContents, module: Any = None) -> Fed:
    """A text with images in it; its length counts their tokens."""
    import torch

    if not hasattr(config, "vision_config"):
        raise BadInput(f"{config.model_type} has no vision tower that is known: --images cannot be told its tokens")
    tokens = image_tokens(config, contents, module)
    if shape is not None and len(shape) != 1:
        size = "x".join(map(str, shape))
        raise BadInput(f"`input_shape` is a number of tokens, those of images included, got {size}; images: --images")
    count = 0 if tokens is None else tokens.total
    text = min(TEXT_TOKENS, longest_text(getattr(config, "text_config", config)) or TEXT_TOKENS)
    length = shape[0] if shape else count + text
    if length <= count:
        raise BadInput(
            f"{count:,} image tokens leave no room for text in {length:,}: give a longer --input or smaller --images"
        )
    ids = torch.zeros((2, length), dtype=torch.int64, device="cpu")
    ids[:, 1 : 1 + count] = _image_token(config)
    labels = (contents.label_tokens or LABEL_TOKENS) if is_answering(config) else length
    kwargs: dict[str, Any] = {"labels": meta_tensor(labels)}
    values = {"input_ids": ids}
    about = "" if tokens is None else tokens.text
    if is_answering(config):
        about += f"{', ' if about else ''}{labels} label tokens"
    if tokens is not None:
        kwargs |= _seen(config, tokens, length)
        if config.model_type in ("paligemma", "gemma3"):  # attention among the tokens of an image is not causal
            values["token_type_ids"] = (ids == _image_token(config)).to(torch.int64)
    notes = () if shape else (f"{text} tokens of text beside the images are assumed; --input says them all",)
    return Fed(kwargs, length, notes, about, values, tokens)


def _seen(config: Any, tokens: ImageTokens, length: int) -> dict[str, Any]:
    """The images of two samples, and what a family wants to know beside them."""
    kwargs: dict[str, Any] = {"pixel_values": meta_tensor(tokens.count, *tokens.pixels, is_float=True)}
    if tokens.grid is not None:
        kwargs["position_ids"] = meta_tensor(3, length)
    if config.model_type == "mllama":  # each text token sees all tiles
        tiles = tokens.pixels[0]
        kwargs["aspect_ratio_ids"] = meta_tensor(tokens.count)
        kwargs["aspect_ratio_mask"] = meta_tensor(tokens.count, tiles)
        kwargs["cross_attention_mask"] = meta_tensor(length, tokens.count, tiles)
    if config.model_type == "instructblip":  # the instruction, read by the Q-Former, too
        kwargs["qformer_input_ids"] = meta_tensor(min(length - tokens.total, longest_text(config.qformer_config) or 1))
    return kwargs


def _image_token(config: Any) -> int:
    names = ("image_token_id", "image_token_index")
    return int(next((value for name in names if isinstance(value := getattr(config, name, None), int)), 0))


def _speech(config: Any, _: str, shape: Shape | None, contents: SampleContents) -> Fed:
    """A window of features and its labels. The window's own shape changes nothing; a number alone is the labels'."""
    mels = getattr(config, "num_mel_bins", None) or getattr(config, "input_feat_per_channel", 80)
    frames = 2 * config.max_source_positions if config.model_type == "whisper" else 3000
    length = contents.label_tokens or LABEL_TOKENS
    if shape is not None and len(shape) == 1:
        length = shape[0]
    elif shape not in (None, (mels, frames)):
        got = "x".join(map(str, shape or ()))
        raise BadInput(
            f"{config.model_type} takes {mels}x{frames}, got {got}; the length of its labels: --label-tokens"
        )
    longest = getattr(config, "max_target_positions", None) or length
    if length > longest:
        raise BadInput(f"labels of {config.model_type} have at most {longest} tokens, got {length}")
    features = (mels, frames) if config.model_type == "whisper" else (frames, mels)
    kwargs = {"input_features": meta_tensor(*features, is_float=True), "labels": meta_tensor(length)}
    return Fed(kwargs, length, contents=f"{frames // 100} s of audio, {length} label tokens")


def _sound(config: Any, task: str, shape: Shape | None, contents: SampleContents) -> Fed:
    """A sound wave, and for CTC the letters in it."""
    import torch

    if hasattr(config, "num_mel_bins") and hasattr(config, "max_length"):  # a spectrogram (AST)
        return Fed({"input_values": meta_tensor(*(shape or (config.max_length, config.num_mel_bins)), is_float=True)})
    seconds = contents.audio_seconds or AUDIO_SECONDS
    if shape is not None and len(shape) != 1:
        raise BadInput(f"{config.model_type} takes a number of values of sound (16,000 per second), or --audio-seconds")
    samples = shape[0] if shape else round(seconds * SAMPLING_RATE)
    seconds = samples / SAMPLING_RATE
    kwargs = {"input_values": meta_tensor(samples, is_float=True)}
    text = f"{seconds:.3g} s of audio"
    if task != "CTC":
        return Fed({**kwargs, "labels": meta_tensor()} if task == "AudioClassification" else kwargs, contents=text)
    letters = contents.label_tokens or max(1, round(seconds * CHARACTERS_PER_SECOND))
    labels = torch.ones((2, letters), dtype=torch.int64, device="cpu")
    return Fed(kwargs, contents=f"{text}, {letters} label tokens", values={"labels": labels})


def _heard_features(config: Any, task: str, shape: Shape | None, contents: SampleContents) -> Fed:
    """Frames of a spectrogram, and for CTC the letters in it (wav2vec2-BERT, Parakeet)."""
    import torch

    per_second, width = _frames(config)
    if shape is not None and (len(shape) != 2 or shape[1] != width):
        got = "x".join(map(str, shape))
        raise BadInput(f"{config.model_type} takes frames x {width}, got {got}; or --audio-seconds")
    frames = shape[0] if shape else round((contents.audio_seconds or AUDIO_SECONDS) * per_second)
    heard = _sound(config, task, (round(frames / per_second * SAMPLING_RATE),), contents)
    rest = {name: value for name, value in heard.kwargs.items() if name != "input_values"}
    kwargs = {"input_features": meta_tensor(frames, width, is_float=True), **rest}
    if not hasattr(config, "encoder_config"):
        return replace(heard, kwargs=kwargs)
    mask = torch.ones((2, frames), dtype=torch.bool, device="cpu")  # Parakeet takes lengths from it
    return replace(heard, kwargs=kwargs, values={**heard.values, "attention_mask": mask})


def _frames(config: Any) -> tuple[int, int]:
    """Frames of a second, and the values of one: 10 ms of 80 mels; wav2vec2-BERT takes two frames together."""
    encoder = getattr(config, "encoder_config", config)
    stacked = getattr(config, "feature_projection_input_dim", None)
    return (50, int(stacked)) if stacked else (100, int(getattr(encoder, "num_mel_bins", 80)))


def _spoken_wave(config: Any, _: str, shape: Shape | None, contents: SampleContents) -> Fed:
    """A sound wave and the tokens of its text."""
    heard = _sound(config, "", shape, contents)
    seconds = heard.kwargs["input_values"].shape[1] / SAMPLING_RATE
    length = contents.label_tokens or max(1, round(LABEL_TOKENS * seconds / 30))
    text = f"{heard.contents}, {length} label tokens"
    return Fed({**heard.kwargs, "labels": meta_tensor(length)}, length, contents=text)


_Make = Callable[[Any, str, Shape | None, SampleContents], Fed]
_OF_TASK: Mapping[str, _Make] = {
    "ImageTextToText": _images,
    "SpeechSeq2Seq": _speech,
    "CTC": _sound,
    "VideoClassification": _films,
    CONTRASTIVE: _pairs,
}
_OF_INPUT: Mapping[str, _Make] = {"pixel_values": _picture, "input_values": _sound}


def without_unknown(kwargs: Mapping[str, Any], module: Any) -> dict[str, Any]:
    """The inputs that a network's `forward` takes."""
    parameters = signature(module.forward).parameters
    taken = set(parameters)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        taken |= {"position_ids", "token_type_ids"}
    return {name: value for name, value in kwargs.items() if name in taken}
