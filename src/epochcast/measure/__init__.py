"""Measuring a machine and learning from measurements: benchmarks, tables of measured runs, fits, evaluation."""
