"""The speed of epochcast itself."""
