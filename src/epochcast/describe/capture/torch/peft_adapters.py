"""Adapters that PEFT itself puts into a module on `meta`: DoRA, LoHa, LoKr, IA3 and prefixes."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from epochcast.describe.capture.torch.module_lora import target_paths
from epochcast.describe.graph.adapters import DORA, IA3, LABELS, LOHA, LOKR, PREFIX, is_scaled_before
from epochcast.errors import BadInput, MissingExtra


def with_adapter(module: nn.Module, adapter: str, rank: int, targets: Sequence[str], dropout: float) -> nn.Module:
    """The module, frozen, with PEFT's adapter in place. `rank` of a prefix is how many tokens it has."""
    try:
        import peft
    except ModuleNotFoundError as absent:
        raise MissingExtra("hf", absent.name) from None
    if adapter == PREFIX:
        return _with_prefix(module, rank, peft)
    paths = sorted(target_paths(module, targets, adapter))
    config = _CONFIGS[adapter](peft, rank, paths, dropout)
    try:
        with torch.device("meta"):
            return peft.inject_adapter_in_model(config, module)
    except Exception as problem:  # PEFT refuses layers and ranks in many ways
        raise BadInput(f"PEFT cannot put {LABELS[adapter]} into the model: {str(problem).splitlines()[0]}") from problem


def _dora(peft: Any, rank: int, paths: list[str], dropout: float) -> Any:
    return peft.LoraConfig(
        r=rank, lora_alpha=2 * rank, lora_dropout=dropout, target_modules=paths, use_dora=True, init_lora_weights=False
    )


def _loha(peft: Any, rank: int, paths: list[str], _: float) -> Any:
    return peft.LoHaConfig(r=rank, alpha=2 * rank, target_modules=paths, init_weights=False)


def _lokr(peft: Any, rank: int, paths: list[str], _: float) -> Any:
    return peft.LoKrConfig(r=rank, alpha=2 * rank, target_modules=paths, init_weights=False)


def _ia3(peft: Any, _: int, paths: list[str], __: float) -> Any:
    before = [path for path in paths if is_scaled_before(path)]
    return peft.IA3Config(target_modules=paths, feedforward_modules=before, init_ia3_weights=False)


_CONFIGS: Mapping[str, Callable[[Any, int, list[str], float], Any]] = {
    DORA: _dora,
    LOHA: _loha,
    LOKR: _lokr,
    IA3: _ia3,
}


def _with_prefix(module: nn.Module, tokens: int, peft: Any) -> nn.Module:
    """Only models of transformers that generate take keys and values from before."""
    if not hasattr(module, "prepare_inputs_for_generation"):
        raise BadInput(f"a prefix is for language models of transformers, not for a {type(module).__name__}")
    config_of_model: Any = module.config
    task = "SEQ_2_SEQ_LM" if config_of_model.is_encoder_decoder else "CAUSAL_LM"
    with torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # transformers' of its own older names
        config = peft.PrefixTuningConfig(num_virtual_tokens=tokens, task_type=task)
        wrapped: nn.Module = peft.get_peft_model(module, config)
    return wrapped
