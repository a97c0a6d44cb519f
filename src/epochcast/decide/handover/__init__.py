"""A forecast handed over to whoever runs the job: Slurm, SkyPilot, Kueue, Ray."""
