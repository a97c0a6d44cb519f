"""Policies on queues: reference totals to a dollar, the default beside peers and the bound, what errors cost.

    python -m studies scheduling        writes docs/schedule.md and studies/scheduling/result.csv; about ten minutes

The workload files with their reference totals lie beside the data; the talk's random instances are drawn.
"""

import csv
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import mean
from time import perf_counter

from epochcast.scheduling.bound import lower_bound_dollars
from epochcast.scheduling.generators import talk
from epochcast.scheduling.outcome import Outcome
from epochcast.scheduling.policies.registry import Switches, policy_named
from epochcast.scheduling.simulator import Rules, Simulation, simulate
from epochcast.scheduling.workload import QueuedJob, Workload
from epochcast.scheduling.workload_file import read_workload, with_error

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "schedule.md"
RESULT = Path(__file__).with_name("result.csv")
BEGIN, END = "<!-- measured: written by python -m studies scheduling -->\n", "<!-- end of measured -->"

REPRODUCED = ("fifo", "edf", "priority", "edf_shared")
COMPARED = ("fifo", "edf", "priority", "edf_shared", "greedy", "local_search", "tiresias", "atc", "atc_rollout")
SEEDS = range(3)
ERRORS = (0.1, 0.2, 0.3)
# Dollars by which a reference total may be missed.
TOLERANCE = 1.0
# What the default may be above the reference policy of the same name.
MOST_ABOVE = 1.01


def main() -> int:
    folder = _folder()
    rows: list[list[object]] = []
    failures: list[str] = []
    pieces = []
    if folder is not None:
        text, bad = _references(folder, rows)
        pieces.append(text)
        failures += bad
    pieces += [_instances(rows), _errors(rows), _latency(rows)]
    with RESULT.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["part", "workload", "policy", "value", "of"], *rows])
    page = PAGE.read_text(encoding="utf-8")
    head, tail = page.split(BEGIN)[0], page.split(END)[1]
    if folder is not None:
        PAGE.write_text(head + BEGIN + "\n".join(pieces) + END + tail, encoding="utf-8")
    print("\n".join(pieces), *failures, sep="\n")
    return 1 if failures else 0


def _folder() -> Path | None:
    data = os.environ.get("EPOCHCAST_DATA")
    folder = Path(data).parent / "workloads" if data else None
    if folder is None or not (folder / "reference.json").exists():
        print("no workload files beside the data: reference totals are left out")
        return None
    return folder


def _run(workload: Workload, name: str, stops: bool = True, reestimate: bool = False) -> Outcome:
    return simulate(workload, policy_named(name, Switches(stops, stops)), Rules(reestimate=reestimate))


def _references(folder: Path, rows: list[list[object]]) -> tuple[str, list[str]]:
    reference = json.loads((folder / "reference.json").read_text(encoding="utf-8"))
    failures: list[str] = []
    off = 0.0
    lines = [
        "### Against reference totals\n",
        "| workload | reference roll-outs | ours | ratio | ours, jobs keep what they have | bound | above it |",
        "|---|---|---|---|---|---|---|",
    ]
    for file, told in reference.items():
        workload = read_workload(folder / f"{file}.json")
        for name in REPRODUCED:
            dollars = _run(workload, name).dollars
            off = max(off, abs(dollars - told[name]["dollars"]))
            rows.append(["reference", file, name, round(dollars, 2), told[name]["dollars"]])
        bound = lower_bound_dollars(workload)
        ours, keeping = _run(workload, "atc_rollout"), _run(workload, "atc_rollout", stops=False)
        theirs = told["atc_rollout"]["dollars"]
        rows += [
            ["reference", file, "atc_rollout", round(ours.dollars, 2), theirs],
            ["reference", file, "atc_rollout_keeping", round(keeping.dollars, 2), told["edf"]["dollars"]],
            ["reference", file, "bound", round(bound, 2), ""],
        ]
        if ours.dollars > MOST_ABOVE * theirs:
            failures.append(f"{file}: {ours.dollars:.2f} is more than 1 % above {theirs:.2f}")
        lines.append(
            f"| {file} | {theirs:,.0f} | {ours.dollars:,.0f} | {ours.dollars / theirs:.3f} | {keeping.dollars:,.0f} "
            f"(edf {told['edf']['dollars']:,.0f}) | {bound:,.0f} | {ours.dollars / bound - 1:.1%} |"
        )
    if off > TOLERANCE:
        failures.append(f"a reference total is missed by {off:.2f} dollars")
    lines.append(f"\n{', '.join(REPRODUCED)}: all totals reproduced, the worst within {off:.2f} dollars.\n")
    return "\n".join(lines), failures


def _instances(rows: list[list[object]]) -> str:
    lines = [
        "### The talk's random instances\n",
        f"Ten nodes, a hundred jobs, mean dollars of {len(SEEDS)} instances; drawn by `scheduling/generators.py`.\n",
        f"| load | {' | '.join(COMPARED)} | keeping | bound |",
        "|---" * (len(COMPARED) + 3) + "|",
    ]
    for load in ("low", "high", "overload"):
        workloads = [talk(10, load, seed) for seed in SEEDS]
        bills = {name: mean(_run(w, name).dollars for w in workloads) for name in COMPARED}
        bills["keeping"] = mean(_run(w, "atc_rollout", stops=False).dollars for w in workloads)
        bills["bound"] = mean(lower_bound_dollars(w) for w in workloads)
        rows += [["talk", load, name, round(value, 2), ""] for name, value in bills.items()]
        lines.append(f"| {load} | {' | '.join(f'{value:,.0f}' for value in bills.values())} |")
    return "\n".join(lines) + "\n"


def _errors(rows: list[list[object]]) -> str:
    lines = [
        "### What errors of forecasts cost\n",
        "The default policy sees T·exp(σz), one z per job; dollars above perfect knowledge, mean of the instances.\n",
        "| load | σ | believing the forecast | corrected by progress |",
        "|---|---|---|---|",
    ]
    for load in ("high", "overload"):
        perfect = {seed: _run(talk(10, load, seed), "atc_rollout").dollars for seed in SEEDS}
        for error in ERRORS:
            more = []
            for reestimate in (False, True):
                runs = [(seed, with_error(talk(10, load, seed), error, seed)) for seed in SEEDS]
                ratios = [_run(w, "atc_rollout", reestimate=reestimate).dollars / perfect[seed] for seed, w in runs]
                more.append(mean(ratios) - 1)
            rows.append(["error", load, error, round(more[0], 4), round(more[1], 4)])
            lines.append(f"| {load} | {error} | {more[0]:+.1%} | {more[1]:+.1%} |")
    return "\n".join(lines) + "\n"


def _latency(rows: list[list[object]]) -> str:
    """Decisions about 400 live jobs on 100 nodes."""
    seconds = sorted(_decisions())
    p99 = seconds[min(len(seconds) - 1, int(0.99 * len(seconds)))]
    rows.append(["latency", "100 nodes, 400 live jobs", "atc_rollout", round(p99, 3), 0.5])
    return (
        "### How long a decision takes\n\n"
        f"100 nodes, 400 live jobs: median {seconds[len(seconds) // 2]:.2f} s, 99th percentile {p99:.2f} s "
        "(one core; what it was when the study ran, on a shared machine).\n"
    )


def _decisions() -> Iterator[float]:
    crowd = talk(100, "overload", 0, jobs=440)
    jobs = tuple(_at_once(job) for job in crowd.jobs[:400]) + crowd.jobs[400:]
    simulation = Simulation(Workload(crowd.fleet, jobs), policy_named("atc_rollout"))
    simulation.step()
    for _ in range(40):
        began = perf_counter()
        simulation.step()
        yield perf_counter() - began


def _at_once(job: QueuedJob) -> QueuedJob:
    return replace(job, submit_seconds=0.0, deadline_seconds=job.deadline_seconds - job.submit_seconds)
