"""Policies: from the state of a queue to who runs from now on. All of them are in the table of `registry`."""
