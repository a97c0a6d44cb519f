"""Tables of measured runs that anybody may have written, read as jobs."""
