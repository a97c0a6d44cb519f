"""Ops on a device, collectives on wires and launches on the host, brought together: step, epoch, job, dollars."""
