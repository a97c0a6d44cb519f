"""The keys of trainers, a table each."""
