"""Hundreds of questions to epochcast, their answers kept, and two sets of answers compared.

    python -m benchmarks.answers record before.jsonl [--jobs 2]
    python -m benchmarks.answers compare before.jsonl after.jsonl [--renamed renamed.toml] [--texts]

This proves that a change of the code moves no forecast. Questions go through the command line with `--json`, the
surface that stays when modules move. `questions.txt` lists them, `material` writes the files that they are about,
`asking` asks one, `comparing` finds what moved. `renamed.toml` lists the keys that changed on purpose. To record the
answers of another revision, put its `src` first: `PYTHONPATH=other/src python -m benchmarks.answers record …`.
"""
