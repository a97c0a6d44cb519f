"""The default on drawn workloads: the talk's instances, a day of a cluster, Gavel's jobs, errors of forecasts."""

from collections.abc import Mapping
from pathlib import Path
from statistics import mean

import polars as pl

from epochcast.schedule.cluster_traces import from_trace
from epochcast.schedule.generators import TALK_TYPES, talk
from epochcast.schedule.lower_bound import keeping_bound_dollars, lower_bound_dollars
from epochcast.schedule.policies.rollout import WORK, RollOut
from epochcast.schedule.simulator import SimulationRules, simulate
from epochcast.schedule.workload_file import with_error
from epochcast.schedule.workload_jobs import Fleet, NodeType, QueueWorkload
from studies.scheduling.gavel_workload import gavel, measured_kinds
from studies.scheduling.parts import Part, played, table
from studies.scheduling.reference_policy import reference_rollout

SEARCHED = ("greedy", "random_greedy", "local_search", "path_relinking")
COLUMNS = ("fifo", "edf", "priority", "edf_shared", "search", "milp", "atc", "atc_rollout", "keeping", "bound")
# Nodes, load, instances. Above ten nodes only the quick ones of the searches are played, and no integer program.
INSTANCES = ((10, "low", 1), (10, "high", 1), (10, "overload", 5), (20, "overload", 5), (50, "overload", 5))
MOST_NODES_SEARCHED = 10
# With fifty nodes the default may do a quarter of its work: the study is to end.
LARGE_NODES, LARGE_WORK = 50, 175_000
# Means of five instances by the same rules that came with the workload files, of the talk's own scheduler and of the
# reference roll-outs: fifo, edf, edf_shared, search, atc_rollout.
TOLD = ("fifo", "edf", "edf_shared", "search", "atc_rollout")
PUBLISHED: Mapping[str, tuple[int, ...]] = {
    "10 overload": (148_015, 50_109, 35_946, 16_947, 7_417),
    "20 overload": (287_941, 77_345, 68_919, 28_676, 15_435),
    "50 overload": (624_088, 136_656, 146_623, 40_807, 25_364),
}
OTHERS = (("overload", (11, 12, 13)), ("high", (11, 12, 13)), ("low", (11, 12)), ("mixed", (11, 12)))
ERRORS = (("high", 0.1), ("high", 0.2), ("high", 0.3), ("overload", 0.3))
ERROR_SEEDS = {"high": (0, 1), "overload": (0,)}
# The busiest day of the trace, on machines of one kind of device with up to four GPUs.
TRACE_DAY, TRACE_NODES = 148, 10
TRACED = ("fifo", "edf", "edf_shared", "greedy", "atc", "atc_rollout")
# Prices of a GPU hour, made up in the proportions of clouds' lists.
GAVEL_DOLLARS = {"K80 (one die)": 0.45, "P100": 1.46, "V100-16GB": 2.48}
GAVEL_NODES, GAVEL_JOBS, GAVEL_GAP_SECONDS = 8, 100, 1200.0


def other_files(data: Path) -> Part:
    """Drawn workloads of ten nodes beside the reference policy, as it is described."""
    part, lines = Part(""), []
    for load, seeds in OTHERS:
        ratios, keeping, most = [], [], []
        for seed in seeds:
            workload = talk(10, load, seed)
            ours, theirs = played(workload, "atc_rollout").dollars, simulate(workload, reference_rollout).dollars
            ratios.append(ours / theirs)
            edf, kept = played(workload, "edf").dollars, played(workload, "atc_rollout", stops=False).dollars
            keeping.append(1 - kept / edf)
            most.append(1 - (keeping_bound_dollars(workload) or 0.0) / edf)
            part.rows += [
                ["others", f"{load} {seed}", "atc_rollout", round(ours, 2), round(theirs, 2)],
                ["others", f"{load} {seed}", "atc_rollout_keeping", round(kept, 2), round(edf, 2)],
            ]
        shown = ", ".join(f"{ratio:.3f}" for ratio in ratios)
        saved = ", ".join(f"{share:.1%} of {least:.1%}" for share, least in zip(keeping, most, strict=True))
        lines.append([load, shown, f"{mean(ratios):.3f}", saved])
        if max(ratios) > 1.01:
            part.failures.append(f"{load}: {max(ratios):.3f} of the reference policy on a drawn workload")
    header = "load | ours over reference roll-outs | mean | keeping saves against edf, of the most that is possible"
    part.text = (
        "Ten nodes, a hundred jobs, drawn by the same rules and not used to choose any "
        "setting. The reference policy is ours after its description (`studies/scheduling/reference_policy.py`), "
        "which is 5 % better than the published total in overload.\n\n"
        f"{table(header, lines)}"
    )
    return part


def instances(data: Path) -> Part:
    """The talk's random instances under all policies."""
    part, lines, singly, told = Part(""), [], [], []
    for nodes, load, seeds in INSTANCES:
        name, bills = f"{nodes} {load}", [_bills(talk(nodes, load, seed)) for seed in range(seeds)]
        means = {column: mean(bill[column] for bill in bills) for column in COLUMNS if column in bills[0]}
        part.rows += [["talk", name, column, round(value, 2), ""] for column, value in means.items()]
        below = 1 - means["atc_rollout"] / means["search"]
        lines.append([name, *(f"{means[c]:,.0f}" if c in means else "–" for c in COLUMNS), f"{below:.0%}"])
        if name not in PUBLISHED:
            continue
        for seed, bill in enumerate(bills):
            part.rows += [
                ["talk singly", f"{name} {seed}", c, round(bill[c], 2), ""] for c in ("search", "atc_rollout")
            ]
        singly.append(f"{name} " + ", ".join(f"{1 - bill['atc_rollout'] / bill['search']:.0%}" for bill in bills))
        published = dict(zip(TOLD, PUBLISHED[name], strict=True))
        beside = [f"{means[c]:,.0f} / {published[c]:,}" for c in TOLD]
        told.append([name, *beside, f"{1 - means['atc_rollout'] / published['search']:.0%}"])
    header = " | ".join(["nodes, load", *COLUMNS, "below search"])
    part.text = (
        "Ten jobs per node, dollars (overload: means of five instances); drawn by "
        "`schedule/generators.py`. *search* is the best of greedy, random greedy, local search and path relinking "
        "(above ten nodes: of greedy and random greedy, at fifty: greedy); *keeping* is the default when jobs keep "
        "what they have. At fifty nodes the default does a quarter of its work per decision.\n\n"
        f"{table(header, lines)}\n"
        "How much the default is below the best search, instance by instance: "
        f"{'; '.join(singly)}. Where little is late, nobody can be much below.\n\n"
        "Beside the means of five other instances by these rules that came with the workload files (ours / theirs): "
        "their searches are those of the talk's own scheduler, their roll-outs the reference policy.\n\n"
        f"{table(' | '.join(['nodes, load', *TOLD, 'ours below their search']), told)}"
    )
    return part


def _bills(workload: QueueWorkload) -> dict[str, float]:
    nodes = workload.fleet.nodes
    bills = {name: played(workload, name).dollars for name in ("fifo", "edf", "priority", "edf_shared", "atc")}
    searched = SEARCHED if nodes <= MOST_NODES_SEARCHED else SEARCHED[: 1 + (nodes < LARGE_NODES)]
    bills["search"] = min(played(workload, name).dollars for name in searched)
    if nodes <= MOST_NODES_SEARCHED:
        bills["milp"] = played(workload, "milp").dollars
    work = LARGE_WORK if nodes >= LARGE_NODES else WORK
    bills["atc_rollout"] = simulate(workload, RollOut(work=work)).dollars
    bills["keeping"] = simulate(workload, RollOut(keeps=True, resizes=False, work=work)).dollars
    bills["bound"] = lower_bound_dollars(workload)
    return bills


def trace_day(data: Path) -> Part:
    """The busiest day of a real cluster's trace, with deadlines and lateness drawn."""
    rows = pl.read_parquet(data / "cluster_jobs.parquet").sort("submit_seconds")
    day = rows.filter(pl.col("submit_seconds") // 86_400 == TRACE_DAY)
    read = from_trace(day.iter_rows(named=True), Fleet(TRACE_NODES, TALK_TYPES[:3]), 0)
    part, workload = Part(""), read.workload
    bills = {name: played(workload, name) for name in TRACED}
    bills["atc_rollout keeping"] = played(workload, "atc_rollout", stops=False)
    bound = lower_bound_dollars(workload)
    part.rows = [["trace", f"day {TRACE_DAY}", name, round(bill.dollars, 2), ""] for name, bill in bills.items()]
    part.rows.append(["trace", f"day {TRACE_DAY}", "bound", round(bound, 2), ""])
    lines = [
        [
            name,
            f"{b.dollars:,.0f}",
            f"{b.machine_dollars:,.0f}",
            f"{b.tardiness_dollars:,.0f}",
            f"{b.deadline_misses:,}",
        ]
        for name, b in bills.items()
    ]
    part.text = (
        f"{len(workload.jobs)} jobs of day {TRACE_DAY} of the trace on {TRACE_NODES} machines of up to four GPUs; "
        f"deadlines and lateness drawn as above. {len(read.refused)} rows need more GPUs than a "
        f"machine has and are left out. The bound is {bound:,.0f} dollars.\n\n"
        f"{table('policy | dollars | machines | lateness | late jobs', lines)}"
    )
    return part


def gavel_jobs(data: Path) -> Part:
    """Jobs of measured throughputs on three kinds of GPUs."""
    rows = pl.read_parquet(data / "runs.parquet").filter(pl.col("source") == "gavel")
    kinds = measured_kinds(rows.iter_rows(named=True))
    types = tuple(
        NodeType(f"{gpus} x {device}", device, gpus, gpus * price)
        for device, price in GAVEL_DOLLARS.items()
        for gpus in (1, 2, 4)
    )
    workload = gavel(Fleet(GAVEL_NODES, types), kinds, GAVEL_JOBS, GAVEL_GAP_SECONDS, 0)
    names = ("fifo", "edf_shared", "max_min", "finish_time_fairness", "tiresias", "srtf", "atc", "atc_rollout")
    bills = {name: played(workload, name).dollars for name in names} | {"bound": lower_bound_dollars(workload)}
    part = Part("", [["gavel", "100 jobs", name, round(value, 2), ""] for name, value in bills.items()])
    part.text = (
        f"{GAVEL_JOBS} jobs of {len(kinds)} measured kinds (K80, P100, V100; 1, 2, 4 GPUs) on "
        f"{GAVEL_NODES} machines, dollars. The prices are made up in the proportions of clouds' lists.\n\n"
        f"{table(' | '.join(bills), [[f'{value:,.0f}' for value in bills.values()]])}"
    )
    return part


def errors(data: Path) -> Part:
    """The default with forecasts that err."""
    part, lines = Part(""), []
    ways = (SimulationRules(), SimulationRules(reestimate=True), SimulationRules(reestimate=True, tracking_error=1.0))
    for load, error in ERRORS:
        perfect = {seed: played(talk(10, load, seed), "atc_rollout").dollars for seed in ERROR_SEEDS[load]}
        more = []
        for rules in ways:
            runs = [(seed, with_error(talk(10, load, seed), error, seed)) for seed in ERROR_SEEDS[load]]
            more.append(mean(played(w, "atc_rollout", rules=rules).dollars / perfect[seed] for seed, w in runs) - 1)
        names = ("believing", "corrected exactly", "corrected")
        part.rows += [["error", load, name, round(value, 4), error] for name, value in zip(names, more, strict=True)]
        lines.append([load, str(error), *(f"{value:+.1%}" for value in more)])
        if (load, error) == ("high", 0.3) and more[2] > 0.10:
            part.failures.append(f"with 30 % error and re-estimation {more[2]:.1%} above perfect knowledge")
    header = "load | σ | believing the forecast | corrected, trackers exact | corrected, trackers err as measured"
    part.text = (
        "The default policy sees T·exp(σz), one z per job; dollars above perfect knowledge, "
        "mean of two instances (overload: one). Corrected: after 1 % of its run a job's pace is observed, "
        "exactly, or with the error of `track` (median 1.5 %, ninth decile 20 %, less as the run goes on).\n\n"
        f"{table(header, lines)}"
    )
    return part
