"""How the shipped cost models are trained from measurements, and the published models that studies set beside them.

Nothing here ships: `make model` runs `training.train` and `training.train_layers`, and `epochcast` reads what they
wrote.
"""
