"""Memory of an inference engine on one GPU: weights, cache in pages, activations of the largest step, the context.

    weights      layers in their format, embedding and head in 16 bits, over the GPUs that share them
    cache        keys and values of every token, in pages of 16 tokens; a key head on fewer GPUs is copied
    activations  (tokens of the largest step) · (hidden states, both ends of the widest product) + scores in float32

vLLM and SGLang take a fraction of the device at once and fill with pages what weights and activations leave of it;
TensorRT-LLM fills a fraction of what they leave.
"""

from dataclasses import dataclass
from math import ceil

from epochcast.hardware.device import Device
from epochcast.predict.decode.decode_rates import EngineRate
from epochcast.predict.decode.decode_step import ACTIVATION_BYTES, DecodeCost
from epochcast.predict.decode.decoder_shape import DecoderShape
from epochcast.predict.decode.number_formats import DecodeFormat
from epochcast.predict.memory.device_context import context_bytes, usable_bytes

PAGE_TOKENS = 16
"""vLLM's and SGLang's usual block of the cache."""
STEP_TOKENS = 8192
"""Tokens of prompts in one step: vLLM's max_num_batched_tokens for offline use."""
SCORE_BYTES = 4
GRAPH_BYTES = int(0.5 * 2**30)
"""Captured CUDA graphs: vLLM's log says "Graph capturing finished in … secs, took 0.54 GiB" for 7B models."""


@dataclass(frozen=True, slots=True)
class GenerationMemory:
    """Bytes on each GPU. `cache_bytes` are of running sequences, `cache_room_bytes` what the engine has for them."""

    weights_bytes: int
    cache_bytes: int
    activation_bytes: int
    context_bytes: int
    cache_room_bytes: int

    @property
    def needed_bytes(self) -> int:
        """All that the running sequences need."""
        return self.weights_bytes + self.cache_bytes + self.activation_bytes + self.context_bytes


def stored_weight_bytes(shape: DecoderShape, weights: DecodeFormat) -> float:
    """Of the whole model: quantised formats keep embedding, head and norms in 16 bits."""
    if not weights.is_quantised:
        return shape.parameters * weights.bytes_per_value
    return shape.layer_weights * weights.bytes_per_value + (shape.parameters - shape.layer_weights) * ACTIVATION_BYTES


def cached_bytes(cost: DecodeCost, tokens: float) -> float:
    """Of one sequence on one GPU, in whole pages."""
    paged = ceil(tokens / PAGE_TOKENS) * PAGE_TOKENS
    values = 0.0
    for each in cost.shape.attentions:
        values += each.cached_values_per_token * each.read_tokens(paged) / min(cost.gpus, max(1, each.kv_heads))
    return values * cost.cache_bytes_per_value


def step_activation_bytes(shape: DecoderShape, gpus: int, tokens: float, sequences: float) -> float:
    """Of the largest step: two hidden states, the ends of the widest product, and the scores of each sequence."""
    widest = max((each.k + each.n) * min(each.chosen, each.experts) for each in shape.products if not each.is_head)
    vocabulary = max(each.n for each in shape.products if each.is_head)
    return tokens * (2 * shape.hidden + widest / gpus) * ACTIVATION_BYTES + sequences * vocabulary * SCORE_BYTES


def generation_memory(
    cost: DecodeCost, sequences: int, tokens_per_sequence: float, prompt: int, engine: EngineRate, fraction: float
) -> GenerationMemory:
    """What `sequences` of a mean length need, and the room for cache at a fraction of the device."""
    shape, gpus = cost.shape, cost.gpus
    weights_bytes = stored_weight_bytes(shape, cost.weights) / gpus
    step_tokens = min(STEP_TOKENS, sequences * max(1, prompt)) if engine.is_batching else sequences * max(1, prompt)
    activation_bytes = step_activation_bytes(shape, gpus, step_tokens, sequences)
    context = held_beside_bytes(cost.device, engine)
    taken_bytes = weights_bytes + activation_bytes + context
    if engine.of_free:
        room_bytes = fraction * (usable_bytes(cost.device) - taken_bytes)
    else:
        room_bytes = fraction * usable_bytes(cost.device) - taken_bytes
    return GenerationMemory(
        round(weights_bytes),
        round(sequences * cached_bytes(cost, tokens_per_sequence)),
        round(activation_bytes),
        context,
        max(0, round(room_bytes)),
    )


def most_sequences(cost: DecodeCost, tokens_per_sequence: float, prompt: int, limit: int, fraction: float) -> int:
    """Sequences of a mean length that the cache has room for, at most `limit`; 0 where not one fits. Without batching
    in steps, every sequence brings the activations of its prompt, too.
    """
    tokens = max(1.0, tokens_per_sequence)
    if cost.engine.is_batching:
        memory = generation_memory(cost, limit, tokens, prompt, cost.engine, fraction)
        return min(limit, int(memory.cache_room_bytes / cached_bytes(cost, tokens)))
    memory = generation_memory(cost, 1, tokens, prompt, cost.engine, fraction)
    each = cached_bytes(cost, tokens) + memory.activation_bytes
    return min(limit, int((memory.cache_room_bytes + memory.activation_bytes) / each))


def held_beside_bytes(device: Device, engine: EngineRate) -> int:
    """The process and its CUDA graphs, which only engines that batch capture."""
    return context_bytes(device) + (GRAPH_BYTES if engine.is_batching and device.kind == "gpu" else 0)
