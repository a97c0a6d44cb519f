"""Forecast against real: the queue of a DataLoader."""
