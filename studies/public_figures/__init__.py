"""Public figures against our forecasts."""
