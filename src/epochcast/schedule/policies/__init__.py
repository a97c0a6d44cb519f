"""Policies: from the state of a queue to who runs from now on. All of them are in `policy_table`."""
