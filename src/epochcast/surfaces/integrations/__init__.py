"""epochcast inside other tools, in the terms of each."""
