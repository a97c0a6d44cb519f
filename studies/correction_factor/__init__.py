"""The correction factor of 1.5, derived."""
