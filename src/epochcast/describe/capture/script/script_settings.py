"""How a script trains, read from its syntax tree: optimizer, precision, batch, epochs, and the flags of trainers.

Where the script says two things of one option, neither is taken and a note says so. Nothing of the script is run, so
a value that only shows when it runs is not read.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from epochcast.describe.capture.config.lightning_settings import read_trainer
from epochcast.describe.capture.config.optimizers import OptimizerMatch, match_optimizer
from epochcast.describe.capture.config.precisions import KERAS, MIXED
from epochcast.describe.capture.config.preference_settings import ALGORITHM_OF_CONFIG, with_preferences
from epochcast.describe.capture.config.setting import ConfigSetting, ConfigSettings, Reader, problem_of
from epochcast.describe.capture.config.trainers.ultralytics import ULTRALYTICS
from epochcast.describe.capture.config.training_arguments import DEEPSPEED, read_training_arguments
from epochcast.describe.capture.config.trl_config import TRL_CONFIGS, TRL_KEYS
from epochcast.describe.capture.script.fine_tuning import HALVES, FineTuning
from epochcast.describe.capture.script.script_calls import UNREAD, arguments, plain, readable
from epochcast.describe.capture.script.script_models import ScriptNames
from epochcast.describe.capture.script.script_names import Imports
from epochcast.describe.capture.script.script_statements import constants, option, option_defaults
from epochcast.describe.capture.script.syntax_tree import (
    Definition,
    definitions,
    required_arguments,
    statements,
    syntax_tree,
    too_deep,
)
from epochcast.describe.capture.script.trainer_arguments import DEFAULT_KEYS, MATTERS
from epochcast.errors import BadInput, EpochcastError

_LIGHTNING = ("lightning", "pytorch_lightning")
# Packages whose classes are optimizers, with what is in them and is none.
_OPTIMIZER_PACKAGES = (
    *("torch.optim", "bitsandbytes.optim", "apex.optimizers", "deepspeed.ops.adam", "deepspeed.ops.lamb"),
    *("deepspeed.ops.lion", "lion_pytorch", "transformers.optimization", "timm.optim", "torch_optimizer", "muon"),
)
_FROM_TRANSFORMERS = ("AdamW", "Adafactor")
_NO_OPTIMIZERS = ("Optimizer", "GlobalOptimManager")
_KERAS_ROOTS = ("keras", "tensorflow", "tf_keras")
# Arguments and options of scripts, and our names for them.
_HINTS = {
    "num_workers": "workers",
    "batch_size": "batch",
    "train_batch_size": "batch",
    "per_device_train_batch_size": "batch",
    "epochs": "epochs",
    "num_epochs": "epochs",
    "n_epochs": "epochs",
    "num_train_epochs": "epochs",
    "max_epochs": "epochs",
}
_OF_ULTRALYTICS = ("YOLO", "RTDETR", "YOLOWorld", "YOLOE")
_TF32 = ("torch.backends.cuda.matmul.allow_tf32",)


def script_settings(path: Path, name: str = "") -> tuple[ConfigSettings, ...]:
    """What a file says of its training, and the DeepSpeed configs that it names; `name` is the model that is asked for.

    Raises if the file cannot be read as Python.
    """
    tree = syntax_tree(path)
    try:
        return _ScriptReading(path, tree, name.partition(".")[0]).settings()
    except RecursionError:
        raise too_deep(path) from None


@dataclass
class _ScriptReading:
    path: Path
    tree: ast.Module
    name: str
    entries: list[ConfigSetting] = field(default_factory=list)
    weaker: list[ConfigSetting] = field(default_factory=list)
    not_modelled: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    deepspeed: list[ConfigSettings] = field(default_factory=list)
    uses_deepspeed: bool = False
    yolo: str | None = None
    """The network of ultralytics that is made; None where none is."""

    def settings(self) -> tuple[ConfigSettings, ...]:
        """One pass over all calls, then what they agree on."""
        unrelated = {node for other in self._other_factories() for node in ast.walk(other)}
        self.calls = [n for n in ast.walk(self.tree) if isinstance(n, ast.Call) and n not in unrelated]
        self.calls.sort(key=lambda call: (call.lineno, call.col_offset))
        self.names = ScriptNames(Imports.of(self.tree), constants(self.tree), option_defaults(self.calls))
        self.tuning = FineTuning(self.path.name)
        inside = self._optimizer_calls()
        for call in self.calls:
            dotted = self.names.imports.dotted(call.func) or ""
            self._read_call(call, dotted, call in inside)
        self._take_tuning()
        self._read_flags()
        self._read_hints()
        of_script = ConfigSettings(
            self.path.name,
            "",
            tuple(self._agreed()),
            tuple(dict.fromkeys(self.not_modelled)),
            (),
            tuple(dict.fromkeys(self.notes)),
            is_strict=False,
            uses_deepspeed=self.uses_deepspeed,
        )
        is_silent = not (of_script.settings or of_script.not_modelled or of_script.notes or self.deepspeed)
        return () if is_silent else (of_script, *self.deepspeed)

    def _take_tuning(self) -> None:
        self.tuning.name_unread()
        if not self.name:  # a model of the file is asked for by its name
            self.entries += self.tuning.models
        self.entries += self.tuning.entries
        self.weaker += self.tuning.weaker
        self.not_modelled += self.tuning.not_modelled
        self.notes += self.tuning.notes

    def _other_factories(self) -> list[ast.FunctionDef]:
        """Where a function of the file is asked for: others like it, which return something and which nobody calls."""
        functions = [node for node in self.tree.body if isinstance(node, ast.FunctionDef)]
        if all(function.name != self.name for function in functions):
            return []
        mentioned = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        return [
            function
            for function in functions
            if function.name != self.name
            and function.name not in mentioned
            and not required_arguments(function)
            and any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function))
        ]

    def _set(self, option: str, value: Any, node: ast.AST, *, problem: str = "") -> None:
        self.entries.append(ConfigSetting(option, value, f"line {getattr(node, 'lineno', 0)}", problem=problem))

    def _set_optimizer(self, optimizer: OptimizerMatch, call: ast.Call) -> None:
        self._set("optimizer", optimizer.name, call, problem=optimizer.problem)
        self.notes += [optimizer.note] if optimizer.note else []

    # ---- calls ----------------------------------------------------------------------------------

    def _read_call(self, call: ast.Call, dotted: str, is_inside: bool) -> None:
        package, _, last = dotted.rpartition(".")
        root = dotted.partition(".")[0]
        if is_inside and self._is_optimizer(package, last):
            self._read_optimizer(call, last)
        elif root in _LIGHTNING and last in ("Trainer", "Fabric"):
            self._read_document(call, self._trainer)
        elif root == "transformers" and last.endswith("TrainingArguments"):
            self._read_document(call, self._training_arguments)
        elif root == "trl" and (last in TRL_CONFIGS or last.endswith("Trainer")):
            self._read_document(call, partial(self._trl, call, last))
        elif not self.tuning.read_config(call, self.names, root, last):
            self._read_library(call, dotted, root, last)
        self._read_method(call)

    def _read_library(self, call: ast.Call, dotted: str, root: str, last: str) -> None:
        """What is called of libraries that are not built on a trainer's arguments."""
        if root == "ultralytics" and last in _OF_ULTRALYTICS:
            self.yolo = (self.names.text(call.args[0]) if call.args else None) or ""
        elif dotted in ("accelerate.Accelerator", "deepspeed.initialize"):
            (self._read_accelerator if root == "accelerate" else self._read_deepspeed)(call)
        elif root == "torch":
            self._read_torch(call, dotted, last)
        elif root in _KERAS_ROOTS and last in ("set_global_policy", "set_dtype_policy", "set_policy"):
            self._read_policy(call)

    def _read_document(self, call: ast.Call, read: Callable[[dict[str, Any]], list[ConfigSetting]]) -> None:
        """Arguments of a trainer, read as its config file is."""
        keywords = arguments(call, self.names)
        line = f"line {call.lineno}"
        try:
            settings = read(readable(keywords))
        except EpochcastError as error:
            self.notes.append(f"{line}: {problem_of(error)}")
            return
        unread = [name for name, value in keywords.items() if value is UNREAD]
        for setting in settings:
            if setting.is_default and DEFAULT_KEYS.get(setting.option, frozenset()) & set(unread):
                continue  # it is said, and not known
            self.entries.append(ConfigSetting(setting.option, setting.value, line, setting.is_default, setting.problem))
        matters = [name for name in unread if name in MATTERS]
        if matters:
            self.notes.append(f"{line}: {', '.join(matters)}: known only when the script runs")

    def _trainer(self, document: dict[str, Any]) -> list[ConfigSetting]:
        reader = Reader(self.path.name, document)
        self.uses_deepspeed |= read_trainer(reader)
        self.not_modelled += reader.not_modelled
        return reader.entries

    def _training_arguments(self, document: dict[str, Any]) -> list[ConfigSetting]:
        settings = read_training_arguments(self.path.name, document)
        self.not_modelled += settings.not_modelled
        self.notes += settings.notes
        self.notes += [f"not read: {', '.join(settings.unread)}"] if settings.unread else []
        self.uses_deepspeed |= settings.uses_deepspeed
        self._read_deepspeed_config(document.get(DEEPSPEED))
        return list(settings.settings)

    def _trl(self, call: ast.Call, kind: str, document: dict[str, Any]) -> list[ConfigSetting]:
        """A config of TRL, or a trainer that takes arguments of one; what it says counts before TrainingArguments."""
        settings = self.tuning.read_trl(call, kind, document)
        if kind not in TRL_CONFIGS:
            return settings
        options = {setting.option for setting in settings}
        rest = {name: value for name, value in document.items() if name not in TRL_KEYS}
        settings += [setting for setting in self._training_arguments(rest) if setting.option not in options]
        if kind not in ALGORITHM_OF_CONFIG:
            return settings
        reader = with_preferences(self.path.name, document, settings, kind)
        self.not_modelled += reader.not_modelled
        self.notes += reader.notes
        return reader.entries

    def _read_ultralytics(self, call: ast.Call) -> None:
        """YOLO("yolo11n.pt").train(data="coco.yaml", imgsz=640): the arguments of its command line."""
        keywords = arguments(call, self.names)
        settings = ULTRALYTICS.read(self.path.name, {"model": self.yolo, **readable(keywords)})
        line = f"line {call.lineno}"
        self.entries += [replace(each, key=line) for each in settings.settings]
        self.not_modelled += settings.not_modelled
        self.notes += settings.notes
        self.notes += [
            f"{line}: {name}: known only when the script runs" for name in keywords if keywords[name] is UNREAD
        ]

    def _read_accelerator(self, call: ast.Call) -> None:
        keywords = readable(arguments(call, self.names))
        precision = MIXED.get(str(keywords.get("mixed_precision", "")).casefold())
        if precision is not None:
            self._set("precision", precision, call)
        if isinstance(keywords.get("gradient_accumulation_steps"), int):
            self._set("accumulate", keywords["gradient_accumulation_steps"], call)

    def _read_deepspeed(self, call: ast.Call) -> None:
        self.uses_deepspeed = True
        keywords = readable(arguments(call, self.names))
        config = keywords.get("config", keywords.get("config_params", self.names.options.get("deepspeed_config")))
        if config is None:
            self.notes.append(
                f"line {call.lineno}: the config of deepspeed.initialize is not in the script; give the file"
            )
        self._read_deepspeed_config(config)

    def _read_deepspeed_config(self, config: Any) -> None:
        from epochcast.describe.capture.config.config_file import named_deepspeed
        from epochcast.describe.capture.config.deepspeed_config import read_deepspeed

        try:
            if isinstance(config, Mapping) and "class_path" not in config:
                self.deepspeed.append(read_deepspeed(f"{self.path.name}, {DEEPSPEED}", readable(config)))
            elif isinstance(config, str):
                self.deepspeed += named_deepspeed(self.path.name, config, self.path.parent)
        except BadInput as error:
            self.notes.append(problem_of(error))

    def _read_torch(self, call: ast.Call, dotted: str, last: str) -> None:
        keywords = arguments(call, self.names)
        if last == "autocast" or dotted.endswith(("amp.autocast", "autocast_mode.autocast")):
            self._read_autocast(call, keywords)
        elif dotted == "torch.set_float32_matmul_precision":
            word = self.names.text(call.args[0]) if call.args else None
            if word in ("high", "medium"):
                self.weaker.append(ConfigSetting("precision", "tf32", f"line {call.lineno}"))
        elif dotted == "torch.compile":
            mode = keywords.get("mode")
            self._set("compile", "reduce-overhead" if mode == "reduce-overhead" else "inductor", call)
        elif dotted.endswith(".FullyShardedDataParallel") or last == "fully_shard":
            self._set("strategy", "fsdp", call)
        elif last == "DataParallel":
            self._set("strategy", "data_parallel", call)

    def _read_autocast(self, call: ast.Call, keywords: Mapping[str, Any]) -> None:
        device = self.names.text(call.args[0]) if call.args else keywords.get("device_type")
        dtype = str(keywords.get("dtype", call.args[1] if len(call.args) > 1 else ""))
        if len(call.args) > 1 and "dtype" not in keywords:
            dtype = self.names.imports.dotted(call.args[1]) or ""
        enabled = keywords.get("enabled", True)
        if device == "cpu" or enabled in (False, 0):
            return
        if enabled is UNREAD or keywords.get("dtype") is UNREAD:
            self.notes.append(f"line {call.lineno}: autocast: known only when the script runs; give `precision`")
            return
        self._set("precision", "amp_bf16" if dtype.endswith("bfloat16") else "amp_fp16", call)

    def _read_policy(self, call: ast.Call) -> None:
        policy = (self.names.text(call.args[0]) if call.args else None) or ""
        if policy in KERAS:
            self._set("precision", KERAS[policy], call)

    def _read_method(self, call: ast.Call) -> None:
        """model.compile(optimizer="adam"), model.to(memory_format=torch.channels_last), from_pretrained(dtype=…)."""
        if not isinstance(call.func, ast.Attribute):
            return
        match call.func.attr:
            case "compile" if self.names.imports.dotted(call.func) is None:  # not re.compile or torch.compile
                self._read_keras_compile(call)
            case "to" if readable(arguments(call, self.names)).get("memory_format") == "torch.channels_last":
                self._set("channels_last", True, call)
            case "train" if self.yolo is not None and call.keywords:
                self._read_ultralytics(call)
            case "from_pretrained" | "from_config":
                self.tuning.read_loading(call, arguments(call, self.names), self.names)
            case "gradient_checkpointing_enable" | "activation_checkpointing_enable":
                self.notes.append(
                    f"line {call.lineno}: gradient checkpointing counts where the model is made with it; "
                    "otherwise give `checkpointing`"
                )

    def _read_keras_compile(self, call: ast.Call) -> None:
        """compile("adam"), compile(optimizer=keras.optimizers.SGD(momentum=0.9), loss=…)."""
        keywords = readable(arguments(call, self.names))
        optimizer = keywords.get("optimizer", plain(call.args[0], self.names) if call.args else None)
        if optimizer is None and "loss" not in keywords:
            return
        if isinstance(optimizer, str):
            self._set_optimizer(match_optimizer(optimizer), call)
        elif isinstance(optimizer, Mapping):
            inner = optimizer.get("init_args", {})
            self._set_optimizer(_keras_optimizer(str(optimizer.get("class_path", "")), inner), call)
        if keywords.get("jit_compile") is True:
            self._set("compile", "xla", call)
        if any(meaning.partition(".")[0] == "tensorflow" for meaning in self.names.imports.meanings.values()):
            self._set("framework", "tensorflow", call)

    # ---- optimizers -----------------------------------------------------------------------------

    def _optimizer_calls(self) -> list[ast.Call]:
        """Calls among which the optimizer is looked for: a Lightning class says its own, else the file. A function
        that makes one such class stands for it.
        """
        methods = {
            node.name: method
            for node, _ in definitions(self.tree.body)
            if isinstance(node, ast.ClassDef) and (method := _method(node, "configure_optimizers")) is not None
        }
        function = next((n for n in self.tree.body if isinstance(n, ast.FunctionDef) and n.name == self.name), None)
        named = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)} if function is not None else {self.name}
        chosen = [method for name, method in methods.items() if name in named]
        return [c for c in ast.walk(chosen[0]) if isinstance(c, ast.Call)] if len(chosen) == 1 else self.calls

    def _is_optimizer(self, package: str, last: str) -> bool:
        if not last[:1].isupper() or last in _NO_OPTIMIZERS or "lr_scheduler" in package or last.endswith("LR"):
            return False
        if package == "transformers":
            return last in _FROM_TRANSFORMERS
        return any(package == root or package.startswith(f"{root}.") for root in _OPTIMIZER_PACKAGES)

    def _read_optimizer(self, call: ast.Call, last: str) -> None:
        keywords = arguments(call, self.names)
        momentum = keywords.get("momentum")
        if momentum is None and len(call.args) > 2 and last == "SGD":
            momentum = self.names.value(call.args[2])
        if momentum is UNREAD:
            momentum = True  # a momentum that is named is hardly zero
        optimizer = match_optimizer(last, momentum=momentum, nesterov=keywords.get("nesterov"))
        self._set_optimizer(optimizer, call)
        if keywords.get("fused") is True or optimizer.style:
            self._set("update_style", "fused", call)
        elif keywords.get("foreach") is False:
            self._set("update_style", "loop", call)

    # ---- assignments, options -------------------------------------------------------------------

    def _read_flags(self) -> None:
        """torch.backends.cuda.matmul.allow_tf32 = True, wherever it stands."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is True:
                for target in node.targets:
                    if isinstance(target, ast.Attribute) and self.names.imports.dotted(target) in _TF32:
                        self.weaker.append(ConfigSetting("precision", "tf32", f"line {node.lineno}"))

    def _read_hints(self) -> None:
        """Batch and epochs as arguments of loaders and of `fit`, or as options of the script."""
        stated = {setting.option for setting in self.entries if not setting.is_default}
        hints: dict[str, list[tuple[ConfigSetting, bool]]] = {}
        for call in self.calls:
            default = option(call)
            pairs = [(k.arg or "", k.value) for k in call.keywords] if default is None else [default]
            for name, expression in pairs:
                value = self.names.value(expression)
                ours = _HINTS.get(name)
                if ours is None or ours in stated or not isinstance(value, int) or isinstance(value, bool) or value < 2:
                    continue
                hints.setdefault(ours, []).append(
                    (ConfigSetting(ours, value, f"line {call.lineno}"), _is_training(call))
                )
        for hinted in hints.values():
            of_training = [setting for setting, is_training in hinted if is_training]
            self.entries += of_training or [setting for setting, _ in hinted]

    # ---- what they agree on ---------------------------------------------------------------------

    def _agreed(self) -> Iterator[ConfigSetting]:
        strongest = {setting.option for setting in self.entries if not setting.is_default}
        weaker = [setting for setting in self.weaker if setting.option not in strongest]
        by_option: dict[str, list[ConfigSetting]] = {}
        for setting in (*self.entries, *weaker):
            by_option.setdefault(setting.option, []).append(setting)
        for name, settings in by_option.items():
            stated = [setting for setting in settings if not setting.is_default] or settings
            stated = _stored_first(stated) if name == "precision" else stated
            if len({str(setting.value) for setting in stated}) == 1:
                yield stated[0]
                continue
            each = " and ".join(f"{setting.value} ({setting.key})" for setting in stated[:3])
            self.notes.append(f"says {name} {each}; none is taken, give `{name}`")


def _stored_first(settings: Sequence[ConfigSetting]) -> list[ConfigSetting]:
    """Weights that are loaded in half stay so, whatever autocast does around them."""
    stored = [setting for setting in settings if setting.value in HALVES.values()]
    return stored or list(settings)


def _keras_optimizer(class_path: str, inner: Mapping[str, Any]) -> OptimizerMatch:
    is_sgd = class_path.rpartition(".")[2] == "SGD"
    return match_optimizer(
        class_path, momentum=inner.get("momentum", 0.0) if is_sgd else None, nesterov=inner.get("nesterov")
    )


def _method(node: ast.ClassDef, name: str) -> Definition | None:
    return next((s for s, _ in statements(node.body) if isinstance(s, ast.FunctionDef) and s.name == name), None)


def _is_training(call: ast.Call) -> bool:
    """DataLoader(train_set, …), DataLoader(…, shuffle=True), model.fit(…)."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "fit":
        return True
    names = {node.id for argument in call.args for node in ast.walk(argument) if isinstance(node, ast.Name)}
    names |= {node.attr for argument in call.args for node in ast.walk(argument) if isinstance(node, ast.Attribute)}
    is_shuffled = any(
        k.arg == "shuffle" and isinstance(k.value, ast.Constant) and k.value.value is True for k in call.keywords
    )
    return is_shuffled or any("train" in name.casefold() for name in names)
