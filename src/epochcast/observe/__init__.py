"""What really happened: logs, tracked runs, the store, and models learned from past jobs."""
