"""Measuring: ops, models, loaders and collectives on this machine or on a fleet, into one append-only file."""
