"""Reference totals: four policies to a dollar, and the default beside the roll-outs of the reference."""

import json
from pathlib import Path

from epochcast.schedule.lower_bound import keeping_bound_dollars, lower_bound_dollars
from epochcast.schedule.workload_file import read_workload
from studies.scheduling.parts import Part, played, table

REPRODUCED = ("fifo", "edf", "priority", "edf_shared")
# Dollars by which a reference total may be missed.
TOLERANCE = 1.0
# What the default may be above the reference policy of the same name.
MOST_ABOVE = 1.01


def reference_totals(data: Path) -> Part:
    """Every reference workload."""
    folder = data.parent / "workloads"
    reference = json.loads((folder / "reference.json").read_text(encoding="utf-8"))
    part, off, lines = Part(""), 0.0, []
    for file, told in reference.items():
        workload = read_workload(folder / f"{file}.json")
        for name in REPRODUCED:
            dollars = played(workload, name).dollars
            off = max(off, abs(dollars - told[name]["dollars"]))
            part.rows.append(["reference", file, name, round(dollars, 2), told[name]["dollars"]])
        bound = lower_bound_dollars(workload)
        kept = max(bound, keeping_bound_dollars(workload) or 0.0)
        ours, keeping = played(workload, "atc_rollout").dollars, played(workload, "atc_rollout", stops=False).dollars
        theirs, edf = told["atc_rollout"]["dollars"], told["edf"]["dollars"]
        part.rows += [
            ["reference", file, "atc_rollout", round(ours, 2), theirs],
            ["reference", file, "atc_rollout_keeping", round(keeping, 2), edf],
            ["reference", file, "bound", round(bound, 2), ""],
            ["reference", file, "bound_keeping", round(kept, 2), ""],
        ]
        if ours > MOST_ABOVE * theirs:
            part.failures.append(f"{file}: {ours:.2f} is more than 1 % above {theirs:.2f}")
        lines.append(
            [
                *(file, f"{theirs:,.0f}", f"{ours:,.0f}", f"{ours / theirs:.3f}"),
                *(f"{bound:,.0f}", f"{ours / bound - 1:.1%}", f"{keeping:,.0f}", f"{edf:,.0f}", f"{kept:,.0f}"),
                *(f"{1 - keeping / edf:.1%}", f"{1 - kept / edf:.1%}"),
            ]
        )
    if off > TOLERANCE:
        part.failures.append(f"a reference total is missed by {off:.2f} dollars")
    header = (
        "workload | reference roll-outs | ours | ratio | bound | above it | keeping | edf | bound | saves | at most"
    )
    part.text = (
        f"{table(header, lines)}\n"
        f"{', '.join(REPRODUCED)}: all totals reproduced, the worst within {off:.2f} dollars. *Keeping* is ours when "
        "jobs keep what they have, beside edf, which does so, too, and the bound for such policies: what it saves, and "
        "what any could save at most that knew every job beforehand.\n"
    )
    return part
