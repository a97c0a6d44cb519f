"""Sliding windows of Hugging Face's models, by the kernels that run them.

Layers with a window (`sliding_window`, `layer_types`) say it to their attention function. FlashAttention takes the
window as it is, and no mask is made; PyTorch's own fused attention has none, and transformers makes a mask from a text
as long as the window on (masking_utils.py). What a configuration leaves to eager attention (Gemma 2's capped scores,
gpt-oss' sinks) writes its scores, whatever a mask hides.
"""

from typing import Any

WINDOWS = "fused_attention_with_window"
_SDPA = "sdpa"


def say_windows(module: Any) -> None:
    """The parts of a module that have windows and PyTorch's fused attention say their windows to it."""
    from transformers import modeling_utils

    try:
        from transformers.masking_utils import AttentionMaskInterface
    except ImportError:  # before 4.53 every model made its own masks
        return
    modeling_utils.ALL_ATTENTION_FUNCTIONS.register(WINDOWS, _attention)
    AttentionMaskInterface.register(WINDOWS, _mask)
    for part in module.modules():
        config = getattr(part, "config", None)
        if getattr(config, "_attn_implementation", None) == _SDPA and getattr(config, "sliding_window", None):
            part.config._attn_implementation_internal = WINDOWS


def _attention(module: Any, *operands: Any, sliding_window: int | None = None, **options: Any) -> Any:
    """A window is of the tokens up to a query's own; without causality as many behind it, too."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    from epochcast.describe.capture.torch.fused_kernels import windowed

    said = options.get("is_causal")
    is_causal = getattr(module, "is_causal", True) if said is None else said
    window = sliding_window or 0
    with windowed(window if is_causal or not window else 2 * window - 1):
        return sdpa_attention_forward(module, *operands, **options)


def _mask(*arguments: Any, **options: Any) -> Any:
    from transformers.masking_utils import sdpa_mask

    from epochcast.describe.capture.torch.fused_kernels import has_window_kernel

    return None if has_window_kernel() else sdpa_mask(*arguments, **options)
