"""A running job: what its log says, and when it will end."""
