"""Seconds of one step of an inference engine: a token for each running sequence, and prompts beside them.

With B sequences whose contexts sum to C tokens, and P tokens of prompts, on t GPUs that share every layer:

    step = Σ products(m = B + P) + norms, rotations and gates(m) + Σ attention(C) + attention within prompts
           + 2 all-reduces per layer + engine

The head scores B positions alone. Products and cache are cut evenly over the t GPUs (Shoeybi et al. 2019). Experts are
chosen evenly, so that m tokens read 1 - (1 - r/E)^m of them. Prompts attend at the rate of products, half of the square
of their length. What is fused between products reads and writes the hidden states eight times per layer (two norms
with their residuals) and the outputs of products once more each. Kernels run one behind the other in a CUDA graph.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import hypot

from epochcast.hardware.device import Device
from epochcast.hardware.link import Link
from epochcast.predict.decode.decode_rates import AllReduceRate, AttentionRate, DecodeRates, EngineRate, ProductRate
from epochcast.predict.decode.decoder_shape import DecodeProduct, DecoderShape
from epochcast.predict.decode.number_formats import DecodeFormat, decode_format

ACTIVATION_BYTES = 2
HIDDEN_PASSES = 8
OUTPUT_PASSES = 1


@dataclass(frozen=True, slots=True)
class DecodeParts:
    """Seconds of a step by what it runs."""

    products: float = 0.0
    attention: float = 0.0
    all_reduce: float = 0.0
    engine: float = 0.0

    @property
    def seconds(self) -> float:
        """Their sum."""
        return self.products + self.attention + self.all_reduce + self.engine

    def plus(self, other: "DecodeParts", times: float = 1.0) -> "DecodeParts":
        """These and `times` the others."""
        return DecodeParts(*(getattr(self, f.name) + times * getattr(other, f.name) for f in fields(self)))

    def shares(self) -> Mapping[str, float]:
        """Fractions of the sum."""
        total = self.seconds
        return {f.name: getattr(self, f.name) / total if total else 0.0 for f in fields(self)}


@dataclass(frozen=True, slots=True)
class StepLoad:
    """What one step works on: running sequences, their contexts in sum, tokens of prompts, and the mean prompt."""

    sequences: float
    context_tokens: float
    prompt_tokens: float = 0.0
    prompt_length: float = 0.0


@dataclass(frozen=True)
class DecodeCost:
    """A decoder on `gpus` GPUs that share its layers, in the formats of an engine."""

    shape: DecoderShape
    device: Device
    gpus: int
    weights: DecodeFormat
    cache_bytes_per_value: float
    product: ProductRate
    plain_product: ProductRate
    attention: AttentionRate
    all_reduce: AllReduceRate | None
    engine: EngineRate
    expert_factor: float = 1.0

    def step(self, load: StepLoad) -> DecodeParts:
        """One step; the middle value."""
        tokens = load.sequences + load.prompt_tokens
        seconds = 0.0
        for each in self.shape.products:
            seconds += each.count * self._product_seconds(each, load.sequences if each.is_head else tokens)
        attention, within = self._attention_seconds(load)
        return DecodeParts(
            seconds + self._fused_seconds(tokens) + within,
            attention,
            self._exchange_seconds(tokens),
            self._engine_seconds(),
        )

    def _product_seconds(self, each: DecodeProduct, tokens: float) -> float:
        """s + sqrt((bytes / fB)² + (flops / gP)²) of one product."""
        if tokens <= 0:
            return 0.0
        rate = self.plain_product if each.is_head else self.product
        stored = ACTIVATION_BYTES if each.is_head else self.weights.bytes_per_value
        weight_bytes = each.weights / each.count * each.read_fraction(tokens) * stored
        rows = tokens * (each.chosen if each.experts > 1 else 1.0)
        moved_bytes = weight_bytes / self.gpus + rows * ACTIVATION_BYTES * (each.k + each.n / self.gpus)
        math = "bf16" if each.is_head else self.weights.math_on(self.device)
        flops = tokens * each.flops_per_token / each.count / self.gpus
        if each.experts > 1:
            moved_bytes, flops = moved_bytes * self.expert_factor, flops * self.expert_factor
        memory_seconds = moved_bytes / (rate.bandwidth_fraction * self.device.memory_bytes_per_second)
        return rate.start_seconds + hypot(memory_seconds, flops / (rate.peak_fraction * self.device.peak(math)))

    def _fused_seconds(self, tokens: float) -> float:
        """Norms, residuals, rotations and gates: by their bytes."""
        outputs = sum(each.count * each.n * each.chosen for each in self.shape.products if not each.is_head)
        values = HIDDEN_PASSES * self.shape.hidden * self.shape.layers + OUTPUT_PASSES * outputs / self.gpus
        bandwidth = self.plain_product.bandwidth_fraction * self.device.memory_bytes_per_second
        return tokens * values * ACTIVATION_BYTES / bandwidth

    def _attention_seconds(self, load: StepLoad) -> tuple[float, float]:
        """Of running sequences by the bytes of their cache, and within prompts by its flops."""
        decoding, within = 0.0, 0.0
        bandwidth = self.attention.bandwidth_fraction * self.device.memory_bytes_per_second
        peak = self.plain_product.peak_fraction * self.device.peak("bf16")
        for each in self.shape.attentions:
            if load.sequences > 0:
                read = load.sequences * each.read_tokens(load.context_tokens / load.sequences)
                read_bytes = read * each.cached_values_per_token * self.cache_bytes_per_value
                decoding += each.count * self.attention.start_seconds
                decoding += read_bytes / min(self.gpus, max(1, each.kv_heads)) / bandwidth
            if load.prompt_tokens > 0:
                pairs = load.prompt_tokens * each.read_tokens(load.prompt_length / 2)
                within += 4.0 * each.count * each.heads * each.head_dim * pairs / self.gpus / peak
        return decoding, within

    def _exchange_seconds(self, tokens: float) -> float:
        """Two all-reduces of the hidden states per layer."""
        if self.all_reduce is None or tokens <= 0:
            return 0.0
        return 2 * self.shape.layers * self.all_reduce.seconds(tokens * self.shape.hidden * ACTIVATION_BYTES)

    def _engine_seconds(self) -> float:
        return self.engine.step_seconds + self.engine.layer_seconds * self.shape.layers


def decode_cost(
    shape: DecoderShape,
    device: Device,
    link: Link,
    gpus: int,
    formats: tuple[str, str],
    engine: EngineRate,
    rates: DecodeRates,
) -> DecodeCost:
    """The cost on GPUs joined by a link; `formats` are those of the weights and of the cache."""
    weights, cache = formats
    return DecodeCost(
        shape=shape,
        device=device,
        gpus=gpus,
        weights=decode_format(weights),
        cache_bytes_per_value=decode_format(cache).bytes_per_value,
        product=rates.product(device, weights),
        plain_product=rates.product(device, "bf16"),
        attention=rates.attention(device, cache),
        all_reduce=None if gpus == 1 else rates.all_reduce(device, link, gpus),
        engine=engine,
        expert_factor=rates.expert_factor(weights),
    )
