"""`make fuzz`: damaged input of every kind, and nothing but a user's error may come out."""
