"""Seconds of a collective over a group of ranks: bytes and wires, no ops."""
