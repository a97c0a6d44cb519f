"""Laws of time and memory over all pairs of networks of the zoo and GPUs of the catalogue, and over random jobs.

    python -m studies laws                        half an hour on one quiet core
    python -m studies.laws.run --models 10 --jobs 100 --memory-jobs 20 --seeds 4711

The tests hold the same laws over a few hundred jobs (tests/studies/test_laws.py). The page is docs/laws.md; it says
over how many the laws were checked.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from epochcast.capture.zoo import ZOO
from studies.laws.jobs import LAWS, Case, broken, every_pair, gpus, random_cases

NEEDS_DATA = False
SEEDS, COUNT, MEMORY_COUNT = (12, 8101, 90210), 2000, 300
SHOWN = 20
PAGE = Path(__file__).parents[2] / "docs" / "laws.md"

MEANING = {
    "peak": "no product, and no step, above the peak of the format it runs in, but where Winograd's method explains it",
    "formats": "tf32 never slower than fp32; mixed precision and half never slower than fp32 where the GPU has tensor "
    "cores for them",
    "siblings": "a GPU of the same vendor and generation with at least the rates of another is never slower",
    "batch": "a larger batch never takes less time a step",
    "memory": "a larger batch never needs less memory but for a segment of the allocator (20 MiB); checkpointing "
    "(whole and selective) and freezing (all, and weights alone) never more; of ZeRO no stage more than the one before",
}
Row = tuple[str, str, list[str]]


def found(models: int, jobs: int, memory_jobs: int, seeds: Sequence[int]) -> Iterator[Row]:
    """(law, over what, what breaks it), law by law."""
    chosen = tuple(ZOO) if models >= len(ZOO) else tuple(Random(seeds[0]).sample(sorted(ZOO), models))
    pairs = [case for case in every_pair() if case.model in chosen]
    which = "every network" if models >= len(ZOO) else "drawn networks"
    over = f"{len(pairs):,} pairs of {which} ({len(chosen)}) and every GPU ({len(gpus())}), batch 16, amp_fp16"
    yield from _checked(pairs, ("peak", "formats", "siblings"), over)
    of_seeds = f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}"
    drawn = [case for seed in seeds for case in random_cases(seed, jobs)]
    yield from _checked(drawn, [law for law in LAWS if law != "memory"], f"{len(drawn):,} random jobs ({of_seeds})")
    held = [case for seed in seeds for case in random_cases(seed + 1, memory_jobs)]
    yield from _checked(held, ("memory",), f"{len(held):,} random jobs")


def _checked(cases: Sequence[Case], laws: Sequence[str], over: str) -> Iterator[Row]:
    lines = broken(cases, laws)
    for law in laws:
        yield law, over, lines[law]


def page(rows: Sequence[Row]) -> str:
    """docs/laws.md"""
    lines = [
        "# Laws that forecasts keep",
        "",
        "Written by `python -m studies laws`. Whatever was learnt, some things hold for every forecast. Random jobs",
        "are a network of the zoo, a GPU, a precision and a batch from 1 to 256, drawn with a seed.",
        "",
        "| law | checked over | broken by |",
        "|---|---|---|",
        *(f"| {MEANING[law]} | {over} | {len(lines) or 'none'} |" for law, over, lines in rows),
        "",
    ]
    for law, over, broken_by in rows:
        if broken_by:
            lines += [f"Broken, {law} ({over}):", "", *(f"- {line}" for line in broken_by[:SHOWN]), ""]
    lines += [HOW]
    return "\n".join(lines)


HOW = """\
How they are kept:

- **Formats.** Autocast adds casts, each a kernel and a launch, and in a small step these may take longer than the
  products save. Such a step is forecast as the same step in fp32, its interval reaches up to the step with its casts,
  and a warning says so (`forecasting/mixed.py`). Of the 2,075 measured runs in mixed precision of nvidia_dle and
  pollux that can be forecast none is touched by this, so their error is the same with and without (15.3 %). Of 184
  networks that were published in both precisions on one machine, three are slower in mixed precision, by 3, 7 and 18 %.
- **Siblings.** What boards sustain is in the order of their data sheets (`hardware/sustained.py`). Tiles that fill one
  more wave, fewer but faster multiprocessors or a larger cache would make a slower board win; of every op both sides of
  the roofline are bounded by those of all slower siblings (`cost/slower_siblings.py`). Over 244 measured runs this
  moves 92 forecasts, by 3.2 % at the most: error 19.4 → 19.3 % in the mean, 15.9 → 15.6 % in the median.
- **Memory.** An allocator's fragments may happen to be more where less is held. A step that is checkpointed or frozen
  needs at most what the plain step needs (`forecasting/rank_memory.py`).

A device that you calibrated in one precision alone keeps your measurement: the law of formats has no say there.

`tests/studies/test_laws.py`, `tests/cost/test_slower_siblings.py` and `tests/forecasting/test_memory_laws.py` hold the
same laws over some hundred jobs, and over all pairs of siblings, with every change.
"""


def main(arguments: Sequence[str] = ()) -> int:
    """Check, print, write the page; 1 where a law is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=len(ZOO), help="networks, each with every GPU")
    parser.add_argument("--jobs", type=int, default=COUNT, help="random jobs of each seed")
    parser.add_argument("--memory-jobs", type=int, default=MEMORY_COUNT, help="random jobs of each seed, for memory")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    asked = parser.parse_args(arguments)
    rows = []
    for law, over, lines in found(asked.models, asked.jobs, asked.memory_jobs, asked.seeds):
        print(f"{law:10} {over}: {len(lines)} broken", flush=True)
        for line in lines[:SHOWN]:
            print(f"    {line}")
        rows.append((law, over, lines))
    PAGE.write_text(page(rows), encoding="utf-8")
    return int(any(lines for _, _, lines in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
