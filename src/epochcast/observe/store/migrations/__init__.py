"""How the tables came to be, version by version; Alembic runs what is in `versions`."""
