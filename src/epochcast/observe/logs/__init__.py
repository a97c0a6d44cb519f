"""Training logs: formats, recognition, and reading them into observations."""
