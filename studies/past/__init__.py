"""How far runs of one job lie apart, and how often what past runs say of the next one holds."""
