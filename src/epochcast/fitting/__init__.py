"""From measurements to learned cost models and device profiles, and how well they do."""
