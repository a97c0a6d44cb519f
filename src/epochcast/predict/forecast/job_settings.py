"""Options of a job that config files, the script around the model, or a compiled model say: filled in where the user
says nothing, and told.

What the user says counts before every file, and a later file before an earlier one. Notes say what was read where,
what was left aside, and where two of them differ.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

from epochcast.base.notes import Importance, Note, as_note
from epochcast.base.options import Option
from epochcast.describe.capture.config.config_file import read_settings
from epochcast.describe.capture.config.precisions import WITH_MASTERS
from epochcast.describe.capture.config.setting import (
    FILLING,
    GLOBAL_BATCH,
    PACKING,
    PROMPTS_OF_GPU,
    RESPONSES_OF_GPU,
    SETTLED,
    STEPS,
    ConfigSetting,
    ConfigSettings,
)
from epochcast.describe.datasets import Dataset, find_dataset
from epochcast.describe.graph.adapters import LABELS, LOHA, LOKR, PREFIX
from epochcast.errors import BadInput, EpochcastError
from epochcast.predict.forecast.generation_options import counts_otherwise
from epochcast.predict.forecast.job import JOB_OPTIONS
from epochcast.predict.forecast.lengths import PACKED, PADDED, WAYS, Lengths, lengths_in
from epochcast.predict.forecast.strategies.degrees import degrees_in
from epochcast.predict.forecast.where import PLACE_OPTIONS

OPTIONS: Mapping[str, Option] = {option.name: option for option in (*JOB_OPTIONS, *PLACE_OPTIONS)}
MOST_NAMED = 5
"""So many keys that change no forecast are named in a note."""

MODEL = "model"
_BATCHES = ("batch", "global_batch")
_OF_PEFT = (LOHA, LOKR, PREFIX)
_QUANTISED = ("four_bit", "eight_bit", "quantize")
_OF_LOADER = ("workers", "prefetch")
# Ways to train in which every GPU sees samples of its own.
_SPLIT = ("tp", "pp", "cp")
"""Degrees of a product that split one model."""
_DATA_PARALLEL = ("ddp", "horovod", "data_parallel", "zero1", "zero2", "zero3", "fsdp", "mirrored")


@dataclass(frozen=True)
class FilledOptions:
    """All options by name, the user's own included, and what to tell about the others."""

    options: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    model: object = None
    """As given, else as a file says it."""


def filled(
    model: object, given: Mapping[str, Any], config: Sequence[str | Path] = (), taken: Iterable[str] | None = None
) -> FilledOptions:
    """The options that are given, and those that the model's own script and the files of `config` say besides.

    `taken` are the options that the question has; others in the files are passed over in silence.
    """
    files = [settings for path in config for settings in read_settings(path)]
    written = next((value for settings in reversed(files) if (value := settings.value(MODEL)) is not None), None)
    if model is None and written is None:
        raise NoModel([settings.name for settings in files])
    sources = [*settings_around(written if model is None else model), *files]
    if not sources:
        return FilledOptions(dict(given), model=model)
    filling = _Filling(dict(given), sources, frozenset(OPTIONS if taken is None else taken))
    return filling.filled(model)


def settings_around(model: object) -> tuple[ConfigSettings, ...]:
    """What the script that makes a model, or the model itself, says of its training, where it can be read."""
    from epochcast.describe.capture.config.model_settings import model_settings

    return model_settings(model)


class NoModel(BadInput):
    """Neither the question nor a file of settings says which model."""

    def __init__(self, files: Sequence[str]) -> None:
        said = f"{' and '.join(dict.fromkeys(files))} does not say which model" if files else "no model"
        super().__init__(f"{said}: give MODEL, such as llama3_8b, hf:config.json or file.py:factory")
        self.files = tuple(files)


@dataclass
class _Filling:
    given: dict[str, Any]
    sources: list[ConfigSettings]
    taken: frozenset[str]
    settings: dict[str, tuple[ConfigSetting, ConfigSettings]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    used: dict[str, list[str]] = field(default_factory=dict)
    absent: dict[str, list[str]] = field(default_factory=dict)

    def filled(self, model: object) -> FilledOptions:
        """The options; `model` is the one that is given, or None."""
        for source in self.sources:
            for setting in source.settings:
                self._add(setting, source)
        model = self._settle_model(model)
        self._leave_unknown()
        self._settle_precision()
        self._settle_batch()
        self._settle_prompts()
        self._settle_places()
        self._settle_adapter(model)
        self._settle_text_length()
        options = self._options()
        self._settle_length(options)
        return FilledOptions(options, (*self._source_notes(), *self.notes), model)

    def _leave_unknown(self) -> None:
        """Name settings for which there is no option."""
        for name in [each for each in self.settings if each not in OPTIONS and each not in SETTLED]:
            setting, source = self.settings.pop(name)
            self.absent.setdefault(source.name, []).append(f"{setting.key} ({name} {setting.value})")

    def _settle_model(self, given: object) -> object:
        """The model that is given counts before the one that a file says."""
        said = self.settings.pop(MODEL, None)
        if said is None:
            return given
        setting, source = said
        if given is None and setting.problem:
            raise BadInput(f"{source.name}, {setting.key}: {setting.problem}")
        if given is None:
            self.used.setdefault(source.name, []).append(f"model {setting.value}")
            return setting.value
        if isinstance(given, str) and given != setting.value and not setting.problem:
            self.notes.append(f"{source.name} says model {setting.value} ({setting.key}); {given} is given and counts")
        return given

    def _add(self, setting: ConfigSetting, source: ConfigSettings) -> None:
        """A later file counts, but never a mere default before something said."""
        before = self.settings.get(setting.option)
        if before is None:
            self.settings[setting.option] = setting, source
            return
        if setting.is_default:
            return
        if not before[0].is_default and before[0].value != setting.value:
            self.notes.append(
                f"{setting.option}: {before[1].name} says {before[0].value}, {source.name} says {setting.value}; "
                "the latter counts"
            )
        self.settings[setting.option] = setting, source

    def _value(self, name: str) -> Any:
        """As given, else as found; None where neither says."""
        if self.given.get(name) is not None:
            return self.given[name]
        return self.settings[name][0].value if name in self.settings else None

    def _settle_precision(self) -> None:
        """Under DeepSpeed, mixed precision keeps weights in half beside a copy in float32."""
        if "precision" not in self.settings or not any(source.uses_deepspeed for source in self.sources):
            return
        setting, source = self.settings["precision"]
        if setting.value in WITH_MASTERS and "torch_autocast" not in setting.key:
            self.settings["precision"] = ConfigSetting("precision", WITH_MASTERS[setting.value], setting.key), source

    def _settle_batch(self) -> None:
        """DeepSpeed: train_batch_size = micro batch × accumulation × GPUs; of three the fourth follows."""
        whole = self.settings.pop(GLOBAL_BATCH, None)
        if any(self.given.get(name) is not None for name in _BATCHES):
            for name in _BATCHES:
                if name in self.settings and name not in self.given:
                    self._tell_given(name, *self.settings.pop(name))
            return
        if whole is None:
            return
        setting, source = whole
        batch, accumulate, gpus = (self._value(name) for name in ("batch", "accumulate", "gpus"))
        if batch is None:
            self.settings["global_batch"] = ConfigSetting("global_batch", setting.value, setting.key), source
            return
        per_update, split = batch * (accumulate or 1), self._split()
        replicas = max((gpus or 1) // split, 1)
        if gpus is None and accumulate is not None and setting.value % per_update == 0:
            self.settings["gpus"] = ConfigSetting("gpus", setting.value // per_update * split, setting.key), source
        elif accumulate is None and setting.value % (batch * replicas) == 0:
            passes = setting.value // (batch * replicas)
            self.settings["accumulate"] = ConfigSetting("accumulate", passes, setting.key), source
        elif setting.value != per_update * replicas:
            self._problem(
                f"{source.name}: {setting.key} {setting.value} is not {batch} × {accumulate or 1} × {replicas} "
                "(micro batch × accumulation × data parallel GPUs)"
            )

    def _settle_prompts(self) -> None:
        """Prompts of a step over all GPUs, by what one of them has."""
        of_gpu = [self.settings.pop(name, None) for name in (PROMPTS_OF_GPU, RESPONSES_OF_GPU)]
        for said, each in zip(of_gpu, (1, self._value("generations") or 1), strict=True):
            if said is not None and self.given.get("prompts_per_step") is None:
                setting, source = said
                training = (self._value("gpus") or 1) - (self._value("generation_gpus") or 0)
                prompts = max(1, setting.value * max(training // self._split(), 1) // each)
                self.settings["prompts_per_step"] = ConfigSetting("prompts_per_step", prompts, setting.key), source

    def _split(self) -> int:
        """GPUs that share one model, by the strategy."""
        degrees = degrees_in(str(self._value("strategy") or "")) or {}
        return prod(degrees.get(name, 1) for name in _SPLIT)

    def _settle_places(self) -> None:
        """GPUs that the user counts otherwise are not spread over the file's nodes; how an optimizer updates goes with
        it; what a trainer starts by itself counts where the data are images.
        """
        if "update_style" in self.settings:
            optimizer = self.settings.get("optimizer")
            is_its_own = optimizer is not None and optimizer[1] is self.settings["update_style"][1]
            if not is_its_own or self.given.get("optimizer") not in (None, optimizer and optimizer[0].value):
                del self.settings["update_style"]
        counted = self.given.get("gpus")
        if counted is not None and "gpus" in self.settings and self.settings["gpus"][0].value != counted:
            self.settings.pop("nodes", None)
        if self.given.get("tokens") is not None:  # they count the whole training
            self.settings.pop("epochs", None)
        if self.given.get("loader_seconds") is None and not self._reads_images():
            for name in _OF_LOADER:
                if name in self.settings and self.settings[name][0].is_default:
                    del self.settings[name]

    def _reads_images(self) -> bool:
        """Whether the data set is known, and one of images."""
        name = self._value("dataset")
        return name is not None and find_dataset(name).kind == "image"

    def _settle_adapter(self, model: object) -> None:
        """Layers of adapters need a rank; quantised weights are frozen, with an adapter beside them."""
        self._settle_kind_of_adapter(model)
        if any(self.given.get(name) for name in _QUANTISED):
            for name in _QUANTISED:
                if name in self.settings and name not in self.given:
                    setting, source = self.settings.pop(name)
                    self.notes.append(f"{source.name} says {name} {setting.value} ({setting.key}); yours counts")
        if self._value("lora"):
            return
        for name in ("lora_targets", "lora_dropout"):
            self.settings.pop(name, None)
        quantised = [name for name in _QUANTISED if name in self.settings]
        if quantised and not self._value("freeze"):
            (setting, source), *_ = [self.settings.pop(name) for name in quantised]
            place = f"{source.name}, {setting.key}"
            self.notes.append(f"{place}: quantised weights are not trained, and no adapter was read; give `lora`")

    def _settle_kind_of_adapter(self, model: object) -> None:
        """Networks that are built here take only some of PEFT's adapters: LoRA stands for another of its rank."""
        from epochcast.describe.capture.hub import is_built

        said = self.settings.get("adapter")
        if said is None or said[0].value not in _OF_PEFT or not isinstance(model, str) or not is_built(model):
            return
        setting, source = self.settings.pop("adapter")
        if setting.value == PREFIX:
            self.settings.pop("lora", None)
            stands = "without it"
        else:
            stands = "as LoRA of the same rank"
        self._problem(
            f"{source.name}, {setting.key}: {LABELS[setting.value]} is forecast {stands}; for {LABELS[setting.value]} "
            "itself give hf:config.json as MODEL"
        )

    def _settle_text_length(self) -> None:
        """A trainer's longest text: sequences have it where texts are packed, else where the data has so long ones."""
        is_filled = self.settings.pop(FILLING, None) is not None
        if self._says_way():
            self.settings.pop(PACKING, None)
        if "input_shape" not in self.settings:
            return
        setting, source = self.settings["input_shape"]
        if self.given.get("lengths") is not None:
            del self.settings["input_shape"]
        elif is_filled or self._value(PACKING):
            return
        elif (texts := self._texts()) is not None:
            self._settle_cut(texts, setting, source)

    def _settle_cut(self, texts: Dataset, setting: ConfigSetting, source: ConfigSettings) -> None:
        """Texts of a data set that are cut at a trainer's longest length, and padded to the longest of their batch."""
        most, mean = setting.value[0], texts.mean_tokens
        if texts.sample_shape[0] <= most:
            del self.settings["input_shape"]
            self.notes.append(f"{source.name} cuts texts at {most:,} tokens; those of the data are shorter")
        elif mean is not None:
            del self.settings["input_shape"]
            lengths = Lengths(min(mean, most), most, PADDED).text
            self.settings["lengths"] = ConfigSetting("lengths", lengths, setting.key), source
            self.notes.append(f"{source.name} cuts texts at {most:,} tokens; {texts.name} has {mean:,.0f} on average")

    def _says_way(self) -> bool:
        """Whether the lengths that are given say what is done with short texts."""
        given = str(self.given.get("lengths") or "").replace(",", " ").split()
        return any(way in given for way in WAYS)

    def _texts(self) -> Dataset | None:
        """The data set, where it is one of texts."""
        name = self._value("dataset")
        dataset = None if name is None else find_dataset(name)
        return dataset if dataset is not None and dataset.kind == "text" and not dataset.counts_tokens else None

    def _settle_length(self, options: dict[str, Any]) -> None:
        """So many updates are so many samples, seen once."""
        if STEPS not in self.settings or "samples" not in self.taken:
            return
        setting, source = self.settings[STEPS]
        said = next((name for name in ("epochs", "samples", "tokens") if self.given.get(name) is not None), None)
        if said is not None:
            mine = f"{said} {self.given[said]}"
            self.notes.append(f"{source.name} says {setting.value:,} updates; {mine} is given and counts")
            return
        strategy = str(options.get("strategy") or "ddp")
        is_known = degrees_in(strategy) is not None or strategy.partition(":")[0] in _DATA_PARALLEL
        batch = options.get("global_batch")
        if counts_otherwise(options) and options.get("prompts_per_step") is not None:
            rounds = options.get("updates_per_batch", 1) * options.get("epochs_per_batch", 1)
            setting = replace(setting, value=-(-setting.value // rounds))
            batch = options["prompts_per_step"]
        if batch is None and options.get("batch") is not None and is_known:
            replicas = max(options.get("gpus", 1) // self._split(), 1)
            batch = options["batch"] * options.get("accumulate", 1) * replicas
        if batch is None:
            self._problem(f"{source.name}: {setting.value:,} updates are not counted; give `samples`")
            return
        options["samples"], options["epochs"] = self._texts_in(setting.value * batch, options), 1
        self.used.setdefault(source.name, []).append(f"samples {options['samples']:,} ({setting.value:,} updates)")

    def _texts_in(self, sequences: int, options: dict[str, Any]) -> int:
        """Samples that fill so many sequences: where texts are packed, more of them. Without their lengths the
        sequences are samples, whatever they were packed from.
        """
        is_packed, written = bool(options.get(PACKING)), options.get("lengths")
        if written is None:
            options.pop(PACKING, None)
            return sequences
        lengths = lengths_in(written, is_packed=is_packed)
        return int(sequences * lengths.most / lengths.mean) if lengths.way == PACKED else sequences

    def _options(self) -> dict[str, Any]:
        options = {name: value for name, value in self.given.items()}
        for name, (setting, source) in self.settings.items():
            if name not in OPTIONS or name not in self.taken:
                continue
            if self.given.get(name) is not None:
                self._tell_given(name, setting, source)
                continue
            value = self._checked(name, setting, source)
            if value is not None:
                options[name] = value
                words = f"{name} {_shown(name, value)}" + (" (its default)" if setting.is_default else "")
                self.used.setdefault(source.name, []).append(words)
        return options

    def _checked(self, name: str, setting: ConfigSetting, source: ConfigSettings) -> Any:
        problem = setting.problem
        if not problem:
            try:
                return OPTIONS[name].check(setting.value)
            except EpochcastError as error:
                problem = str(error)
        place = f"{source.name}, {setting.key}"
        if source.is_strict:
            raise BadInput(f"{place}: {problem}; say another with `{name}`")
        self._problem(f"{place}: {problem}; using {OPTIONS[name].default}, or set `{name}`")
        return None

    def _problem(self, text: str) -> None:
        """A note that the answer is for something else than a file says."""
        self.notes.append(Note(text, Importance.NOT_AS_ASKED))

    def _tell_given(self, name: str, setting: ConfigSetting, source: ConfigSettings) -> None:
        """Where the user says another thing than a file does."""
        own = self.given.get(name)
        if setting.is_default or _same(OPTIONS[name], own, setting.value):
            return
        said = f"{name} {_shown(name, own)}" if own is not None else "another batch"
        self.notes.append(
            f"{source.name} says {name} {_shown(name, setting.value)} ({setting.key}); {said} is given and counts"
        )

    def _source_notes(self) -> Iterable[str]:
        for source in self.sources:
            kind = f" ({source.kind})" if source.kind else ""
            if source.name in self.used:
                yield f"read from {source.name}{kind}: {', '.join(self.used[source.name])}"
            elif source.is_strict:
                yield Note(f"{source.name}{kind}: nothing else is used", Importance.DETAIL)
            absent = (*source.not_modelled, *self.absent.pop(source.name, ()))
            if absent:
                text = f"{source.name}: not modelled: {', '.join(absent)}"
                yield Note(text, Importance.NOT_AS_ASKED)
            yield from (as_note(note).of(source.name) for note in source.notes)
            if source.unread:
                yield Note(f"{source.name}: not read: {', '.join(source.unread)}", Importance.NOT_AS_ASKED)
            if source.ignored:
                more = len(source.ignored) - MOST_NAMED
                names = ", ".join(source.ignored[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
                yield Note(f"{source.name}: ignored, as they change no forecast: {names}", Importance.DETAIL)


def _shown(name: str, value: Any) -> str:
    """A value as the command line takes it."""
    if name == "checkpointing" and isinstance(value, bool):
        return "full" if value else "none"
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _same(option: Option, first: Any, second: Any) -> bool:
    """Whether two values mean the same, whatever they are called: amp is amp_fp16."""
    if first == second:
        return True
    canonical = _CANONICAL.get(option.name)
    try:
        return canonical is not None and canonical(str(first)) == canonical(str(second))
    except EpochcastError:
        return False


def _precision(name: str) -> str:
    from epochcast.describe.graph.precision import find_precision

    return find_precision(name).name


def _optimizer(name: str) -> str:
    from epochcast.describe.graph.optimizer import find_optimizer

    return find_optimizer(name)


_CANONICAL = {"precision": _precision, "optimizer": _optimizer}
