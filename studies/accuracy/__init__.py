"""How far forecasts are from every public measurement we have; writes docs/accuracy/accuracy.md."""
