"""Justus et al. (2018): the paper's protocol, and GPUs left out."""
