"""Runs that users share: one small anonymous JSON file each (`epochcast share`, `community/`)."""
