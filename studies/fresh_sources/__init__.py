"""Sources that no training read."""
