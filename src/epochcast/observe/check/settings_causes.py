"""Causes that are settings of the training: the job forecast again with one of them changed.

precision, attention, checkpointing, compilation, accumulation, the unit of a rate, the lengths of texts
"""

from collections.abc import Iterator

from epochcast.describe.graph.precision import mixed_precision
from epochcast.observe.check.suspects import COMMON, RARE, USUAL, SpeedQuestion, Suspect

PASSES = (2, 4, 8, 16, 32)
"""Gradient accumulation that people set."""
SHORTER = (0.5, 0.25, 0.125)
"""Lengths of texts tried, of those that were forecast."""
MATH_TEST = 'set torch.set_float32_matmul_precision("high")'
DTYPE_TEST = "print torch.is_autocast_enabled() and next(model.parameters()).dtype inside the step"
HALF_TEST = "use fp16: --precision amp_fp16"
SINGLES, EMULATED = ("fp32", "fp32_strict"), "amp_bf16"
ATTENTION_TEST = 'load with attn_implementation="sdpa", or wrap in torch.nn.attention.sdpa_kernel(FLASH_ATTENTION)'
# Of matrix products: less in kernels of plain float32 is no sign that the precision is another.
SINGLE_SHOWS = 0.5


def precision_causes(question: SpeedQuestion) -> Iterator[Suspect]:
    """Products in another format than forecast."""
    forecast, device = question.forecast, question.placement.device
    if device.kind != "gpu":
        return
    prior = question.prior_of("precision", COMMON)
    single = question.signs.single_fraction
    is_shown = single is not None and single > SINGLE_SHOWS
    shown = f"; {single:.0%} of the products' time is in float32 kernels" if single is not None and is_shown else ""
    peaks = device.peak_flops_per_second
    others = [
        ("fp32_strict", "float32 products without TF32", MATH_TEST),
        ("fp32", f"float32 instead of {forecast.precision}", DTYPE_TEST),
        (mixed_precision(peaks).name, f"mixed precision instead of {forecast.precision}", DTYPE_TEST),
    ]
    if "bf16" not in peaks:
        others.append((EMULATED, "bf16, which this GPU emulates", HALF_TEST))
    for precision, what, test in others:
        step = None if precision == forecast.precision else question.instead(precision=precision, weights=None)
        if step is not None:
            is_single = precision in SINGLES
            evidence = f"{what}{shown if is_single else ''}"
            likely = RARE * prior if precision == EMULATED and not question.is_text else prior
            yield Suspect("precision", step, likely / len(others), evidence, test, is_shown and is_single)


def attention_causes(question: SpeedQuestion) -> Iterator[Suspect]:
    """Scores written to memory instead of a fused kernel, or the other way round."""
    now = question.forecast.attention
    if now is None:
        return
    other = "flash" if now == "eager" else "eager"
    step = question.instead(attention=other)
    if step is not None:
        evidence = f"{other} attention: forecast with {now}"
        yield Suspect("attention", step, question.prior_of("attention", USUAL), evidence, ATTENTION_TEST)


def checkpointing_causes(question: SpeedQuestion) -> Iterator[Suspect]:
    """Blocks computed twice, or not."""
    now = question.forecast.checkpointing
    prior = COMMON if question.is_text else RARE
    for other in ("none", "full"):
        if other == now or question.job.mode != "training":
            continue
        step = question.instead(checkpointing=other == "full")
        if step is not None:
            evidence = f"{other} activation checkpointing: forecast with {now}"
            test = (
                "print model.is_gradient_checkpointing, and look for gradient_checkpointing in the trainer's settings"
            )
            yield Suspect("checkpointing", step, question.prior_of("checkpointing", prior), evidence, test)


def compiler_causes(question: SpeedQuestion) -> Iterator[Suspect]:
    """Compiled where eager was forecast, or the other way round."""
    now = question.forecast.compile
    other = "inductor" if now == "none" else "none"
    step = question.instead(compile=other)
    if step is not None:
        evidence = f"compile {other}: forecast with {now}"
        test = "run with TORCH_LOGS=recompiles,graph_breaks: every recompile or break is printed"
        yield Suspect("compilation", step, question.prior_of("compile", USUAL), evidence, test)


def accumulation_causes(question: SpeedQuestion) -> Iterator[Suspect]:
    """Micro-batches that are counted as steps, or steps that hold more micro-batches than forecast."""
    passes = question.job.accumulate
    test = "print the optimizer's step count after one minute, and compare it with the bar"
    if passes > 1:
        evidence = f"one of {passes} accumulated passes is counted as an iteration"
        yield Suspect("accumulation", question.times(1 / passes), COMMON, evidence, test)
        return
    prior = question.prior_of("accumulate", COMMON if question.is_text else RARE) / len(PASSES)
    for count in PASSES:
        step = question.instead(accumulate=count) if question.job.batch is not None else question.times(count)
        if step is not None:
            evidence = f"{count} accumulated passes per iteration: forecast with one"
            yield Suspect("accumulation", step, prior, evidence, test)


def length_causes(question: SpeedQuestion) -> Iterator[Suspect]:
    """Texts longer or shorter than forecast: padding to a maximum, or a length that nobody said."""
    forecast, test = question.forecast, "print batch['input_ids'].shape for ten batches"
    if forecast.sequence_length is None or question.job.packing:
        return
    longest = forecast.longest_sequence
    if longest is not None and longest > forecast.sequence_length:
        step = question.instead(lengths=None, input_shape=(longest,))
        if step is not None:
            evidence = f"every text padded to {longest:,} tokens: forecast at {forecast.sequence_length:,} on average"
            yield Suspect("padding", step, COMMON, evidence, test)
    if question.job.lengths is not None:
        return
    prior = USUAL if "input_shape" in forecast.assumed else RARE
    for share in SHORTER:
        length = max(1, int(forecast.sequence_length * share))
        step = question.instead(input_shape=(length,))
        if step is not None:
            evidence = f"texts of {length:,} tokens: forecast at {forecast.sequence_length:,}"
            yield Suspect("padding", step, prior / len(SHORTER), evidence, test)
