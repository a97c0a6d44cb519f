"""How GPUs share the work of a step: by name (`rules`), and what each way costs."""
