"""Formats of training logs, one module per family; all known ones are in `registry`."""
