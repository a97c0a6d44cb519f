"""What can be trained for a budget, by a deadline: model, method, and how much of it."""
