"""The models that learn from past jobs, by family; `table.py` lists them all."""
