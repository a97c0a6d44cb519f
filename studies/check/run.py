"""How often `epochcast check` is right: false alarms on normal runs, verdicts and first causes of known faults.

    python -m studies check             writes studies/check/result.csv, cases.csv and docs/accuracy/check-accuracy.md

Cases are rows of public tables (`table_cases.py`), speeds that users wrote down and logs (`known_cases.toml`), and
trainings with an injected fault (`fault_trainings.py`, whose logs are in `trainings.jsonl`). Fails where more than a
tenth of the normal runs is called abnormal.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from epochcast.errors import EpochcastError
from epochcast.observe.check.speed_check import SpeedCheck
from epochcast.observe.runs.speed_verdict import NORMAL
from epochcast.predict.forecast.session import Session
from studies.check.table_cases import checked, table_cases
from studies.check.written_cases import LOGS, NOTHING, TRAINED, USERS, written_cases
from studies.figures_csv import figures_csv

FOLDER = Path(__file__).parent
RESULT, CASES = FOLDER / "result.csv", FOLDER / "cases.csv"
PAGE = FOLDER.parents[1] / "docs" / "accuracy" / "check-accuracy.md"
TABLES = "tables"
MOST_FALSE_ALARMS = 0.1
_INTRODUCTION = """Written by `python -m studies check`: {count} cases whose cause is known. Steps of public tables are
described as they ran, or with one setting wrong. Speeds that users wrote down, and logs, have the cause that is known
of them. Networks are trained on a processor with a fault injected, and checked against a step that was measured without
it (`--step-seconds`)."""
_UNSEEN = """A fault that changes the step by less than the forecast's interval is wide stays unseen: the verdict is
normal, and no cause is named that nothing measured. A measured step of the same job makes the interval narrow, as in
the trainings."""
WORDS = {TABLES: "public tables", USERS: "what users wrote", LOGS: "logs", TRAINED: "trainings with a fault"}


@dataclass(frozen=True, slots=True)
class CheckedCase:
    """One case: what is right, and what was answered."""

    kind: str
    name: str
    cause: str
    right_verdict: str
    verdict: str
    factor: float
    first: str | None
    place: int | None
    """Of the right cause among those named, from 1; None where it is not named."""

    @property
    def is_right(self) -> bool:
        """Whether the verdict is."""
        return self.verdict == self.right_verdict


@dataclass(frozen=True, slots=True)
class CauseFigures:
    """Of cases of one kind with one cause: right verdicts, and how often the cause is first, and named at all."""

    kind: str
    cause: str
    cases: int
    right_verdicts: int
    first: int
    named: int


def main() -> int:
    """Score all cases; 1 where normal runs raise too many alarms."""
    cases = []
    for case in _checked_cases():
        cases.append(case)
        print(f"{case.kind}: {case.name}: {case.cause}: {case.verdict}, {case.first}", flush=True)
    return _written(cases)


def _written(cases: Sequence[CheckedCase]) -> int:
    groups: dict[tuple[str, str], list[CheckedCase]] = defaultdict(list)
    for case in cases:
        groups[case.kind, case.cause].append(case)
    figures = [_figures(kind, cause, each) for (kind, cause), each in sorted(groups.items())]
    RESULT.write_text(figures_csv(tuple(CauseFigures.__dataclass_fields__), figures), encoding="utf-8")
    CASES.write_text(figures_csv(tuple(CheckedCase.__dataclass_fields__), cases), encoding="utf-8")
    PAGE.write_text(_page(cases, figures), encoding="utf-8")
    for each in figures:
        print(
            f"{each.kind:10s} {each.cause:22s} {each.cases:3d} cases, {each.right_verdicts} right, {each.first} first"
        )
    normal = [case for case in cases if case.right_verdict == NORMAL]
    alarms = sum(not case.is_right for case in normal)
    print(f"{alarms} false alarms of {len(normal)}")
    return int(alarms > MOST_FALSE_ALARMS * len(normal))


def _checked_cases() -> Iterator[CheckedCase]:
    session = Session(with_own_profiles=False)
    yield from _checked_written(session)
    yield from _checked_tables(session)


def _checked_written(session: Session) -> Iterator[CheckedCase]:
    for written in written_cases():
        try:
            answer = written.checked(session)
        except EpochcastError as error:
            print(f"left out: {written.name}: {error}", file=sys.stderr)
            continue
        yield _case(written.kind, written.name, written.cause, written.verdict, answer)


def _checked_tables(session: Session) -> Iterator[CheckedCase]:
    for case in table_cases():
        name = f"{case.run.model} on {case.run.device.name}, {case.run.source}"
        try:
            answer, verdict = checked(case, session)
        except EpochcastError as error:
            print(f"left out: {name}: {error}", file=sys.stderr)
            continue
        yield _case(TABLES, name, case.cause, verdict, answer)


def _case(kind: str, name: str, cause: str, verdict: str, answer: SpeedCheck) -> CheckedCase:
    names = [each.name for each in answer.causes]
    place = names.index(cause) + 1 if cause in names else None
    first = names[0] if names else None
    return CheckedCase(kind, name, cause, verdict, answer.verdict, answer.factor.mid, first, place)


def _figures(kind: str, cause: str, cases: Sequence[CheckedCase]) -> CauseFigures:
    return CauseFigures(
        kind,
        cause,
        len(cases),
        sum(case.is_right for case in cases),
        sum(case.place == 1 for case in cases),
        sum(case.place is not None for case in cases),
    )


def _page(cases: Sequence[CheckedCase], figures: Sequence[CauseFigures]) -> str:
    normal = [case for case in cases if case.cause == NOTHING]
    faults = [case for case in cases if case.cause != NOTHING]
    alarms = [case for case in normal if not case.is_right]
    right = [case for case in faults if case.is_right]
    first = [case for case in faults if case.place == 1]
    of_right = [case for case in right if case.place == 1]
    lines = [
        "# How often `check` is right",
        "",
        _INTRODUCTION.format(count=len(cases)),
        "",
        "| | share | cases |",
        "|---|---:|---:|",
        f"| false alarms: a normal run is called slow, fast or suspicious | {_share(alarms, normal)} | {len(normal)} |",
        f"| verdict right, with a fault | {_share(right, faults)} | {len(faults)} |",
        f"| cause first, with a fault | {_share(first, faults)} | {len(faults)} |",
        f"| cause first, where the verdict is right | {_share(of_right, right)} | {len(right)} |",
        "",
        _UNSEEN,
        "",
        "## By cause",
        "",
        "| from | cause | cases | verdict right | cause first | cause named |",
        "|---|---|---:|---:|---:|---:|",
        *(
            f"| {WORDS[each.kind]} | {each.cause} | {each.cases} | {each.right_verdicts} "
            + ("| – | – |" if each.cause == NOTHING else f"| {each.first} | {each.named} |")
            for each in figures
        ),
        "",
        "## What fails",
        "",
        "Normal runs that raise an alarm, and faults whose verdict is right and whose cause is not first:",
        "",
        "| from | case | cause | verdict | observed ÷ forecast | first cause |",
        "|---|---|---|---|---:|---|",
        *(
            f"| {WORDS[case.kind]} | {case.name} | {case.cause} | {case.verdict} | {case.factor:.2f} "
            f"| {case.first or '–'} |"
            for case in (*alarms, *(case for case in right if case.place != 1))
        ),
        "",
        "Every case, with its verdict and first cause, is in `studies/check/cases.csv`.",
        "",
    ]
    return "\n".join(lines)


def _share(part: Sequence[CheckedCase], whole: Sequence[CheckedCase]) -> str:
    return f"{100 * len(part) / len(whole):.0f} %"


if __name__ == "__main__":
    raise SystemExit(main())
