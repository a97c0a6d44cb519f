"""PALEO's published estimates from PALEO's own assumptions."""
