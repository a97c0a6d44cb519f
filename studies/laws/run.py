"""Laws of time and memory over all pairs of networks of the zoo and GPUs of the catalogue, and over random jobs.

    python -m studies laws                        half an hour on one quiet core
    python -m studies.laws.run --models 10 --jobs 100 --memory-jobs 20 --seeds 4711

It goes network by network and keeps what it found of each in the scratch folder (`kept`), so that it can be stopped and
goes on where it was, as long as nothing of the code has changed. The tests hold the same laws over a few hundred jobs
(tests/studies/test_laws.py). The page is docs/accuracy/laws.md; it says over how many the laws were checked.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from epochcast.describe.capture.zoo import ZOO
from studies.laws.jobs import LAWS, Case, broken, every_pair, gpus, random_cases
from studies.laws.kept import Kept

NEEDS_DATA = False
SEEDS, COUNT, MEMORY_COUNT = (12, 8101, 90210), 400, 60
SHOWN = 20
PAGE = Path(__file__).parents[2] / "docs" / "accuracy" / "laws.md"

MEANING = {
    "peak": "no product, and no step, above the peak of the format it runs in, but where Winograd's method explains it",
    "formats": "tf32 never slower than fp32; mixed precision and half never slower than fp32 where the GPU has tensor "
    "cores for them",
    "siblings": "a GPU of the same vendor and generation with at least the rates of another is never slower",
    "batch": "a larger batch never takes less time a step",
    "memory": "a larger batch never needs less memory but for a segment of the allocator (20 MiB); checkpointing "
    "(whole and selective) and freezing (all, and weights alone) never more; of ZeRO no stage more than the one before",
}


@dataclass(frozen=True)
class Part:
    """Cases that some laws are checked over."""

    name: str
    over: str
    laws: tuple[str, ...]
    cases: tuple[Case, ...]

    def of(self, model: str) -> tuple[Case, ...]:
        """Those of one network."""
        return tuple(case for case in self.cases if case.model == model)


def parts(models: int, jobs: int, memory_jobs: int, seeds: Sequence[int]) -> tuple[Part, ...]:
    """Everything that is to be checked."""
    chosen = tuple(ZOO) if models >= len(ZOO) else tuple(Random(seeds[0]).sample(sorted(ZOO), models))
    pairs = tuple(case for case in every_pair() if case.model in chosen)
    which = "every network" if models >= len(ZOO) else "drawn networks"
    over = f"{len(pairs):,} pairs of {which} ({len(chosen)}) and every GPU ({len(gpus())}), batch 16, amp_fp16"
    of_seeds = f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}"
    drawn = tuple(case for seed in seeds for case in random_cases(seed, jobs))
    held = tuple(case for seed in seeds for case in random_cases(seed + 1, memory_jobs))
    of_time = tuple(law for law in LAWS if law != "memory")
    return (
        Part("pairs", over, ("peak", "formats", "siblings"), pairs),
        Part("random", f"{len(drawn):,} random jobs ({of_seeds})", of_time, drawn),
        Part("memory", f"{len(held):,} random jobs ({of_seeds}, each and 1)", ("memory",), held),
    )


def checked(everything: Sequence[Part], kept: Kept) -> Mapping[tuple[str, str], list[str]]:
    """What breaks each law in each part, network by network."""
    found: dict[tuple[str, str], list[str]] = {(part.name, law): [] for part in everything for law in part.laws}
    models = sorted({case.model for part in everything for case in part.cases})
    for place, model in enumerate(models, 1):
        for part in everything:
            cases = part.of(model)
            lines = kept.get(part.name, cases, partial(broken, cases, part.laws))
            for law in part.laws:
                found[part.name, law] += lines[law]
        print(f"{place} of {len(models)}: {model}; {sum(map(len, found.values()))} broken so far", flush=True)
    return found


def page(everything: Sequence[Part], found: Mapping[tuple[str, str], list[str]]) -> str:
    """docs/accuracy/laws.md"""
    return "\n".join([*_table(everything, found), *_broken(everything, found), HOW])


def _table(everything: Sequence[Part], found: Mapping[tuple[str, str], list[str]]) -> Iterator[str]:
    yield from (
        "# Laws that forecasts keep",
        "",
        "Written by `python -m studies laws`. Whatever was learnt, some things hold for every forecast. Random jobs",
        "are a network of the zoo, a GPU, a precision and a batch from 1 to 256, drawn with a seed.",
        "",
        "| law | checked over | broken by |",
        "|---|---|---|",
    )
    for part in everything:
        for law in part.laws:
            yield f"| {MEANING[law]} | {part.over} | {len(found[part.name, law]) or 'none'} |"
    yield ""


def _broken(everything: Sequence[Part], found: Mapping[tuple[str, str], list[str]]) -> Iterator[str]:
    for part in everything:
        for law in part.laws:
            lines = found[part.name, law]
            if lines:
                yield from (f"Broken, {law} ({part.over}):", "", *(f"- {line}" for line in lines[:SHOWN]), "")


HOW = """\
How they are kept:

- **Formats.** Autocast adds casts, each a kernel and a launch, and in a small step these may take longer than the
  products save. Such a step is forecast as the same step in fp32, its interval reaches up to the step with its casts,
  and a warning says so (`predict/forecast/mixed_precision.py`).
- **Siblings.** What boards sustain is in the order of their data sheets (`hardware/sustained.py`). Tiles that fill one
  more wave, fewer but faster multiprocessors or a larger cache would make a slower board win; of every op both sides of
  the roofline are bounded by those of all slower siblings (`predict/cost/slower_siblings.py`).
- **Memory.** An allocator's fragments may happen to be more where less is held. A step that is checkpointed or frozen
  needs at most what the plain step needs (`predict/forecast/rank_memory.py`).

A device that you calibrated in one precision alone keeps your measurement: the law of formats has no say there.

`tests/studies/test_laws.py`, `tests/predict/cost/test_slower_siblings.py` and
`tests/predict/forecast/test_memory_laws.py` hold the same laws over some hundred jobs, and over
all pairs of siblings, with every change.
"""


def main(arguments: Sequence[str] = ()) -> int:
    """Check, print, write the page; 1 where a law is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=len(ZOO), help="networks, each with every GPU")
    parser.add_argument("--jobs", type=int, default=COUNT, help="random jobs of each seed")
    parser.add_argument("--memory-jobs", type=int, default=MEMORY_COUNT, help="random jobs of each seed, for memory")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    asked = parser.parse_args(arguments)
    everything = parts(asked.models, asked.jobs, asked.memory_jobs, asked.seeds)
    found = checked(everything, Kept.of_this_code())
    for part in everything:
        for law in part.laws:
            lines = found[part.name, law]
            print(f"{law:10} {part.over}: {len(lines)} broken")
            for line in lines[:SHOWN]:
                print(f"    {line}")
    PAGE.write_text(page(everything, found), encoding="utf-8")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
