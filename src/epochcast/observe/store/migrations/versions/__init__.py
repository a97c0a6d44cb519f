"""One module per version of the tables, in order. They are never changed once a release has them."""
