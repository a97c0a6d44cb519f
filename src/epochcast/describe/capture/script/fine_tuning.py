"""How a script fine-tunes: adapters (PEFT), quantised weights, and the configs of TRL, read call by call."""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from epochcast.describe.capture.config.adapter_config import (
    ADAPTERS,
    OTHER_ADAPTERS,
    OTHER_QUANTISERS,
    computed_precision,
    read_adapter,
    read_bits_and_bytes,
    read_lora,
    read_unsloth,
)
from epochcast.describe.capture.config.setting import ConfigSetting, ConfigSettings, Reader, problem_of
from epochcast.describe.capture.config.trainers.shared_rows import set_dataset
from epochcast.describe.capture.config.trl_config import ATTENTIONS, LENGTH_KEYS, read_trl
from epochcast.describe.capture.script.script_calls import UNREAD, arguments, readable
from epochcast.describe.capture.script.script_models import ScriptNames
from epochcast.errors import EpochcastError

HALVES = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16"}
_READERS = {("peft", "LoraConfig"): read_lora, ("transformers", "BitsAndBytesConfig"): read_bits_and_bytes}
_ADAPTER, _QUANTISED = "peft_config", "quantization_config"


@dataclass
class FineTuning:
    """What the calls of a script say; `weaker` counts where nothing else says it."""

    script: str
    entries: list[ConfigSetting] = field(default_factory=list)
    weaker: list[ConfigSetting] = field(default_factory=list)
    not_modelled: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    passed: dict[str, str] = field(default_factory=dict)
    """Configs that are passed on, by the name of the argument, and the line."""
    models: list[ConfigSetting] = field(default_factory=list)
    """Ids of the networks that it loads."""
    read_configs: set[str] = field(default_factory=set)
    """Those among them that were read."""

    def read_config(self, call: ast.Call, names: ScriptNames, root: str, last: str) -> bool:
        """LoraConfig(r=16, …), BitsAndBytesConfig(load_in_4bit=True, …) and their like; whether it is one of them."""
        line = f"line {call.lineno}"
        if (root, last) == ("datasets", "load_dataset"):
            self._read_data(names.text(call.args[0]) if call.args else None, line)
            return True
        if (root == "peft" and last in OTHER_ADAPTERS) or (root == "transformers" and last in OTHER_QUANTISERS):
            self.not_modelled.append(f"{last} ({line}: the model is forecast without it)")
            self.read_configs.add(_ADAPTER if root == "peft" else _QUANTISED)
            return True
        read = _reader(root, last)
        if read is None:
            return False
        self.read_configs.add(_QUANTISED if root == "transformers" else _ADAPTER)
        keywords = arguments(call, names)
        unread = frozenset(name for name, value in keywords.items() if value is UNREAD)
        try:
            self._take(read(self.script, readable(keywords), unread), line)
        except EpochcastError as error:
            self.notes.append(f"{line}: {problem_of(error)}")
        computed = computed_precision(readable(keywords))
        self.weaker += [] if computed is None else [replace(computed, key=line)]
        return True

    def _read_data(self, name: str | None, line: str) -> None:
        """load_dataset("tatsu-lab/alpaca"): a data set of the catalogue; of another the size is not known."""
        reader = Reader(self.script, {})
        set_dataset(reader, name or "", line)
        self.entries += [replace(setting, key=line) for setting in reader.entries]

    def read_loading(self, call: ast.Call, keywords: Mapping[str, Any], names: ScriptNames | None = None) -> None:
        """from_pretrained(…, dtype=torch.bfloat16, load_in_4bit=True, attn_implementation="flash_attention_2")."""
        line = f"line {call.lineno}"
        written = keywords.get("model_name", keywords.get("pretrained_model_name_or_path"))
        first = written if isinstance(written, str) else names.text(call.args[0]) if names and call.args else None
        if first and _loads_network(call):
            self.models.append(ConfigSetting("model", first, line))
        if keywords.get(_QUANTISED) is not None:
            self.passed[_QUANTISED] = line
        keywords = readable(keywords)
        dtype = str(keywords.get("torch_dtype", keywords.get("dtype", ""))).rpartition(".")[2]
        if dtype in HALVES:
            self.entries.append(ConfigSetting("precision", HALVES[dtype], line))
        if (names.imports.dotted(call.func) or "").partition(".")[0] == "unsloth" if names else False:
            keywords = self._read_unsloth_loading(keywords, line)
        if keywords.get("load_in_4bit") is True or keywords.get("load_in_8bit") is True:
            self._take(read_bits_and_bytes(self.script, keywords), line)
        attention = str(keywords.get("attn_implementation", ""))
        if attention in ATTENTIONS:
            self.entries.append(ConfigSetting("attention", ATTENTIONS[attention], line))

    def _read_unsloth_loading(self, keywords: Mapping[str, Any], line: str) -> Mapping[str, Any]:
        """unsloth loads a base in four bits with scales quantised twice unless it is asked for another."""
        said = {"load_in_4bit": not (keywords.get("load_in_8bit") or keywords.get("full_finetuning")), **keywords}
        length = said.get("max_seq_length")
        if isinstance(length, int) and not isinstance(length, bool) and length > 0:
            self.weaker.append(ConfigSetting("input_shape", (length,), line))
        return {"bnb_4bit_use_double_quant": True, **said}

    def read_trl(self, call: ast.Call, kind: str, document: Mapping[str, Any]) -> list[ConfigSetting]:
        """What SFTConfig or SFTTrainer say beside TrainingArguments."""
        if any(k.arg == _ADAPTER and not _is_none(k.value) for k in call.keywords):
            self.passed[_ADAPTER] = f"line {call.lineno}"
        if isinstance(document.get("model"), str):
            self.models.append(ConfigSetting("model", document["model"], f"line {call.lineno}"))
        if isinstance(document.get("model_init_kwargs"), Mapping):
            self.read_loading(call, document["model_init_kwargs"])
        reader = Reader(self.script, document)
        read_trl(reader, kind)
        self.not_modelled += reader.not_modelled
        self.notes += reader.notes
        if not any(k.arg in LENGTH_KEYS and _is_none(k.value) for k in call.keywords):
            return reader.entries
        self.notes.append(
            f"line {call.lineno}: texts are not cut, so that their length is not known: give `input_shape`"
        )
        return [setting for setting in reader.entries if setting.option != "input_shape"]

    def name_unread(self) -> None:
        """Say that a config is passed on that cannot be read."""
        for argument, option in ((_ADAPTER, "lora"), (_QUANTISED, "four_bit")):
            if argument in self.passed and argument not in self.read_configs:
                self.notes.append(
                    f"{self.passed[argument]}: {argument} is known only when the script runs: the model is forecast "
                    f"without it, give `{option}`"
                )

    def _take(self, settings: ConfigSettings, line: str) -> None:
        self.entries += [replace(setting, key=line) for setting in settings.settings]
        self.not_modelled += settings.not_modelled
        self.notes += settings.notes


_Read = Callable[[str, Mapping[str, Any], frozenset[str]], ConfigSettings]


def _reader(root: str, last: str) -> _Read | None:
    """What reads a config, by the package and the name of its class or function."""
    if root == "peft" and last in ADAPTERS:
        return partial(read_adapter, last)
    if root == "unsloth" and last == "get_peft_model":
        return read_unsloth
    return _READERS.get((root, last))


def _is_none(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Constant) and expression.value is None


# Classes that are loaded beside a network, by the end of their names.
_NO_NETWORKS = ("Tokenizer", "TokenizerFast", "Processor", "Config", "FeatureExtractor", "Scheduler")


def _loads_network(call: ast.Call) -> bool:
    """AutoModelForCausalLM.from_pretrained, but not AutoTokenizer.from_pretrained."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
    return bool(name) and not name.endswith(_NO_NETWORKS)
