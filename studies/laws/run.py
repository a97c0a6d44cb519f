"""Laws of time and memory over all pairs of networks of the zoo and GPUs of the catalogue, and over random jobs.

    python -m studies laws      about ten minutes on one quiet core

The tests hold the same laws over a few hundred jobs (tests/studies/test_laws.py). The page is docs/laws.md.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from studies.laws.jobs import LAWS, broken, every_pair, gpus, random_cases

NEEDS_DATA = False
SEED, COUNT, MEMORY_COUNT = 12, 2000, 300
SHOWN = 20
PAGE = Path(__file__).parents[2] / "docs" / "laws.md"

MEANING = {
    "peak": "no product, and no step, above the peak of the format it runs in, but where Winograd's method explains it",
    "formats": "tf32 never slower than fp32; half precision never slower than fp32 where tensor cores work, but for "
    "the casts it adds",
    "siblings": "a GPU of the same generation with at least the rates and the cache of another is never slower, but "
    "for waves: tiles of a product that fill one more wave over fewer or slower multiprocessors",
    "batch": "a larger batch never takes less time a step",
    "memory": "a larger batch never needs less memory but for a segment of the allocator (20 MiB); checkpointing and "
    "freezing never more; of ZeRO no stage more than the one before",
}


def found() -> Iterator[tuple[str, str, list[str]]]:
    """(law, over what, what breaks it), law by law."""
    pairs = list(every_pair())
    over = f"every pair of {len({case.model for case in pairs})} networks and {len(gpus())} GPUs, batch 16, amp_fp16"
    yield "peak", over, broken(pairs, ("peak",))["peak"]
    laws = tuple(law for law in LAWS if law != "memory")
    jobs = broken(list(random_cases(SEED, COUNT)), laws)
    for law in laws:
        yield law, f"{COUNT:,} random jobs", jobs[law]
    yield (
        "memory",
        f"{MEMORY_COUNT:,} random jobs",
        broken(list(random_cases(SEED, MEMORY_COUNT)), ("memory",))["memory"],
    )


def page(rows: list[tuple[str, str, list[str]]]) -> str:
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
    lines += [
        "`tests/studies/test_laws.py` and `tests/forecasting/test_memory_laws.py` hold the same laws over some hundred",
        "jobs with every change.",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    """Check, print, write the page; 1 where a law is broken."""
    rows = []
    for law, over, lines in found():
        print(f"{law:10} {over}: {len(lines)} broken", flush=True)
        for line in lines[:SHOWN]:
            print(f"    {line}")
        rows.append((law, over, lines))
    PAGE.write_text(page(rows), encoding="utf-8")
    return int(any(lines for _, _, lines in rows))


if __name__ == "__main__":
    sys.exit(main())
