"""A job and what can be rented: the time–cost frontier, the cheapest by a deadline, the fastest under a budget."""
