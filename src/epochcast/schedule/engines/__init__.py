"""What runs jobs: processes of this machine, a Ray cluster, a Slurm cluster, behind one small protocol."""
