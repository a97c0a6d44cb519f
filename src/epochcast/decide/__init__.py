"""Choices built on forecasts: batch and workers, number of GPUs, what to rent, what a change costs, files for
schedulers."""
