"""Figures others published on comparable rows; rows and splits are theirs, not ours. Fractions, or milliseconds."""

ADDITIVE = {"NCHW": (0.157, 0.133), "channels-last": (0.213, 0.155)}
"""Four coefficients (flops, activations, parameters, constant), ~830 networks of timm on an RTX 3090 in mixed
precision, family left out: MAPE, median APE."""

BOOSTING = {"NCHW": (0.147, 0.119), "channels-last": (0.288, 0.220)}
"""Boosted trees on multiplications, activations and parameters, the same rows."""

TRANSFORMERS = {
    "NeuSight (Lee et al. 2025, ASPLOS)": {"all": (0.089, 0.062), "unseen GPUs": (0.081, 0.058)},
    "roofline": {"all": (0.314, 0.304), "unseen GPUs": (0.360, 0.339)},
    "Habitat (Yu et al. 2021), re-implemented by NeuSight's authors": {
        "all": (3.85, 0.24),
        "unseen GPUs": (7.24, 0.79),
    },
    "Li et al. 2023": {"all": (0.60, 0.23), "unseen GPUs": (0.94, 0.25)},
}
"""80 cells, fp32, one NVIDIA GPU, 42 of them on GPUs no operator was timed on: MAPE, median APE."""
