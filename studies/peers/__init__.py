"""Other methods on the very steps that our forecasts were left out of."""
