"""What a training step executes: operators, front ends that read models and configs, datasets. Knows no device."""
