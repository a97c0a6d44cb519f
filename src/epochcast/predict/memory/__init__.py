"""Bytes a training step needs."""
