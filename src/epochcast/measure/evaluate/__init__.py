"""Forecasts against measurements: errors, coverage, reasons for rows that cannot be forecast."""
