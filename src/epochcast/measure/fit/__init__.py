"""Device profiles and cost models fitted to measurements."""
