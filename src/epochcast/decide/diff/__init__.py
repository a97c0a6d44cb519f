"""Two jobs, or one at two revisions: what changed, how sure that is, and which layers did it."""
