"""Learning from jobs that have already run: a table of them becomes a model that predicts the next one."""
