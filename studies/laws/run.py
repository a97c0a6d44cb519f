"""Laws of time over all pairs of networks of the zoo and GPUs of the catalogue, and over random jobs.

    python -m studies laws      some tens of minutes

The tests hold the same laws over a few hundred jobs (tests/studies/test_laws.py).
"""

import sys

from studies.laws.jobs import LAWS, broken, every_pair, random_cases

NEEDS_DATA = False
SEED, COUNT = 12, 2000
SHOWN = 20


def main() -> int:
    """Every pair at one batch for the quick laws, random jobs for all; 1 where a law is broken."""
    pairs = list(every_pair())
    found = {"every pair, " + law: lines for law, lines in broken(pairs, ("peak",)).items()}
    jobs = list(random_cases(SEED, COUNT))
    found |= {f"{COUNT} random jobs, {law}": lines for law, lines in broken(jobs, tuple(LAWS)).items()}
    print(f"{len(pairs)} pairs of networks and GPUs")
    for what, lines in found.items():
        print(f"{what:32} {len(lines)} broken")
        for line in lines[:SHOWN]:
            print(f"    {line}")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main())
