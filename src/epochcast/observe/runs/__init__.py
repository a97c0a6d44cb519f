"""A training run: recorded from inside, followed from its log, and when it will finish."""
