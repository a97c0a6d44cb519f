"""How GPUs share the work of a step: one object per way (`strategy`), by name (`registry`)."""
