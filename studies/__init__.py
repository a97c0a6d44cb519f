"""Studies: each reproduces a published table or scores us on measured data. `python -m studies.NAME.run` runs one."""
