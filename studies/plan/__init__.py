"""Whether plans choose what measurements say is best."""
