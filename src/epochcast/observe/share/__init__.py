"""A user's measured run as it is shared: from what was observed, a stored run, or a file of `epochcast bench`."""
