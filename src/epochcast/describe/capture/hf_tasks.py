"""Which network a configuration of transformers means, and what it is trained for.

In this order: the class that `architectures` names, where transformers has it; the task in such a name; what the
family is pretrained for (`_FAMILIES`); the first task for which transformers has a class of this configuration.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from epochcast.errors import BadInput

# What a family is pretrained for, where its configuration does not name an architecture.
_FAMILIES: Mapping[str, str] = {
    "MaskedLM": "bert roberta distilbert albert electra deberta deberta-v2 xlm-roberta camembert modernbert mpnet",
    "Seq2SeqLM": "t5 mt5 bart mbart pegasus marian longt5 blenderbot led",
    "ImageClassification": "vit deit beit swin swinv2 convnext convnextv2 resnet dinov2 mobilenet_v2 segformer regnet",
    "SpeechSeq2Seq": "whisper speech_to_text",
}
_OF_FAMILY = {family: task for task, families in _FAMILIES.items() for family in families.split()}
CONTRASTIVE, PLAIN = "Contrastive", "Model"
"""Two towers that are trained on pairs (CLIP, SigLIP), and a body without a head."""
TASKS = (
    *("ImageTextToText", "CausalLM", "Seq2SeqLM", "SpeechSeq2Seq", "CTC", "MaskedLM", "ImageClassification"),
    *("SemanticSegmentation", "ObjectDetection", "VideoClassification", "AudioClassification", "DepthEstimation"),
    *("UniversalSegmentation", "SequenceClassification", "TokenClassification", "QuestionAnswering", "PreTraining"),
)
"""Tasks of `AutoModelFor…`, the first that a configuration has is taken."""
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


def task_of(transformers: Any, config: Any) -> str:
    """What the network of a configuration is trained for."""
    classes = getattr(config, "architectures", None)
    names = [name for name in classes if isinstance(name, str)] if isinstance(classes, list | tuple) else []
    task = task_of_classes(transformers, config, names)
    if task is not None:
        return task
    if config.model_type in _OF_FAMILY:
        return _OF_FAMILY[config.model_type]
    has_vision = hasattr(config, "vision_config")
    if has_vision and _has(transformers, "ImageTextToText", config):
        return "ImageTextToText"
    if _has(transformers, "ZeroShotImageClassification", config):
        return CONTRASTIVE
    tasks = (task for task in TASKS if task != "ImageTextToText" or has_vision)
    return next((task for task in tasks if _has(transformers, task, config)), PLAIN)


def task_of_classes(transformers: Any, config: Any, names: Iterable[str]) -> str | None:
    """The task of classes by their names."""
    for name in names:
        for task in TASKS:
            if name in _class_names(transformers, task, config):
                return task
        if name.endswith("Model") and _has(transformers, "ZeroShotImageClassification", config):
            return CONTRASTIVE
        for suffix, task in _SUFFIXES.items():
            if name.endswith(suffix) and _has(transformers, task, config):
                return task
    return None


def network_class(transformers: Any, config: Any, task: str) -> Any:
    """What builds the network: it has `from_config`."""
    auto = transformers.AutoModel if task in (CONTRASTIVE, PLAIN) else getattr(transformers, f"AutoModelFor{task}")
    if type(config) not in auto._model_mapping:
        raise BadInput(f"transformers {transformers.__version__} has no network for a {type(config).__name__}")
    return auto


def _has(transformers: Any, task: str, config: Any) -> bool:
    auto = getattr(transformers, f"AutoModelFor{task}", None)
    return auto is not None and type(config) in auto._model_mapping


def _class_names(transformers: Any, task: str, config: Any) -> tuple[str, ...]:
    """The names of the classes that transformers has for a task of a configuration."""
    auto = getattr(transformers, f"AutoModelFor{task}", None)
    names = {} if auto is None else auto._model_mapping._model_mapping
    classes = names.get(config.model_type, ())
    return (classes,) if isinstance(classes, str) else tuple(classes)
