"""Seconds of one op on one device: who answers (`registry`), how (`roofline`, `paleo`, …), by which contract.

A cost model looks at the columns of a trace and at a data sheet and gives three numbers per op: low, mid, high. It
knows no cluster, no job and no host: overlap and communication are for those who add the ops up.
"""
