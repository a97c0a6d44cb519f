"""Batch and loader workers for a model on a device: memory, forecast and the loader's queue, solved together."""
