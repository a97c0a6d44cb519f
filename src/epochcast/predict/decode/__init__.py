"""Generation: seconds per token of a decoder, continuous batching, memory of weights and cache."""
