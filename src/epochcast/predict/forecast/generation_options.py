"""Options of a job that generates text: what an inference engine is asked, and how it runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from epochcast.base.options import option
from epochcast.base.record import Record
from epochcast.errors import BadInput
from epochcast.units import parse_count

GENERATE = "generate"
VLLM = "vllm"
MOST_REQUESTS = 10**9

_generation = partial(option, group="generation")


def counts_otherwise(options: Mapping[str, Any]) -> bool:
    """Whether a job is not counted in batches of a training step."""
    return options.get("mode") == GENERATE or options.get("algorithm") not in (None, "sft")


def _checked_lengths(text: str) -> str:
    """The text, if it is a distribution of lengths."""
    from epochcast.predict.forecast.response_lengths import response_lengths

    response_lengths(text)
    return text


class OnlyForecast(BadInput):
    """A verb was asked about a job that `epochcast forecast` alone answers."""

    def __init__(self, option_text: str, also: str = " alone") -> None:
        super().__init__(f"{option_text} is answered by `epochcast forecast`{also}")
        self.option_text = option_text


@dataclass(frozen=True, kw_only=True)
class GenerationOptions(Record):
    """What `Job` says of generation."""

    prompt: int | None = _generation(
        None,
        "Tokens of a prompt, for --mode generate.",
        unit="tokens",
        least=1,
        most=10**7,
        parse=parse_count,
        example="512",
    )
    response: str | None = _generation(
        None,
        "Tokens of a response: 900, lognormal:mean=900,max=8192, uniform:min=200,max=1000 or file=lengths.txt.",
        parse=_checked_lengths,
        example="'lognormal:mean=900,max=8192'",
    )
    concurrency: int | None = _generation(
        None,
        "Sequences in flight over all GPUs [default: as many as the cache holds, at most the engine's own limit].",
        unit="sequences",
        least=1,
        most=10**6,
    )
    requests: int | None = _generation(
        None, "Requests to generate, like 10k.", unit="requests", least=1, most=MOST_REQUESTS, parse=parse_count
    )
    engine: str = _generation(VLLM, "What generates: vllm, sglang, tensorrt-llm or hf (Transformers' generate).")
    engine_tp: int | None = _generation(
        None, "GPUs that share the layers of one engine [default: as few as hold the model].", least=1, most=64
    )
    engine_weights: str | None = _generation(
        None, "Format of the engine's weights: bf16, fp16, fp8, int8, int4 (AWQ, GPTQ), fp4 [default: the precision's]."
    )
    engine_cache: str | None = _generation(None, "Format of keys and values: bf16, fp16 or fp8 [default: 16 bits].")
    engine_eager: bool = _generation(
        False, "The engine launches every kernel from Python, without CUDA graphs (enforce_eager)."
    )
    engine_memory_fraction: float | None = _generation(
        None,
        "Fraction of a GPU's memory that the engine takes [default: the engine's own].",
        above=0,
        most=1,
        flag="--engine-memory",
    )

    def of_generation(self) -> dict[str, object]:
        """How a training step stands in for a generating job, where its network is described."""
        return {"mode": "forward"} if getattr(self, "mode", "") == GENERATE else {}

    def check_is_step(self) -> None:
        """Raise for a job that is no training step."""
        if getattr(self, "mode", "") == GENERATE:
            raise OnlyForecast("--mode generate")
