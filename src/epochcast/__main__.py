"""`python -m epochcast` is the same as the `epochcast` command."""

from epochcast.surfaces.cli import main

if __name__ == "__main__":
    main()
