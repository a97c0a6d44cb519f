"""`python -m benchmarks.answers record|compare`."""

import argparse
import sys
from pathlib import Path

from benchmarks.answers.comparing import compare_files
from benchmarks.answers.recording import record


def main() -> int:
    """Record or compare; 1 where something moved."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.answers", description="Prove that no forecast moved.")
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="ask every question and write the answers")
    recording.add_argument("out", type=Path, help="the file of answers, JSON lines")
    recording.add_argument("--jobs", type=int, default=2, help="processes that ask [default: 2]")
    recording.add_argument("--only", action="append", default=[], help="ask only this chapter; may be repeated")
    comparing = commands.add_parser("compare", help="compare two files of answers; exit code 1 where a number moved")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--renamed", type=Path, help="a TOML file of keys that were renamed on purpose")
    comparing.add_argument("--texts", action="store_true", help="count a reworded note or message as moved")
    comparing.add_argument("--tolerance", type=float, default=1e-9, help="largest relative difference [default: 1e-9]")
    arguments = parser.parse_args()
    if arguments.command == "record":
        return record(arguments.out, arguments.jobs, arguments.only)
    return compare_files(
        arguments.before, arguments.after, arguments.renamed, texts=arguments.texts, tolerance=arguments.tolerance
    )


if __name__ == "__main__":
    sys.exit(main())
