"""Models as lists of typed operators: what a training step executes, before any device is named."""
