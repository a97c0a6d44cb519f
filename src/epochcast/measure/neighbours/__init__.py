"""Measured public runs beside a forecast: the nearest ones, and what epochcast says for them."""
