"""Measure, fit, forecast, train for real, compare: the whole loop on the machine it is run on."""
