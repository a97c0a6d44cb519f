"""Real training logs: formats recognised, steps and seconds against what happened."""
