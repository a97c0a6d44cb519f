"""One capture at a time: torch's hooks and kernels, and Python's filters of warnings, belong to the whole process."""

from threading import RLock

ALONE = RLock()
"""Held while a model is built or captured."""
