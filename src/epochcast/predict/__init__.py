"""How long, how much memory, how many dollars: one job on one placement, with intervals."""
