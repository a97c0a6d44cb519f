"""One training, in a process of its own: `python -m studies.trainings.train NAME FOLDER`; started by `campaign`."""

import sys
from importlib import import_module
from pathlib import Path

from studies.trainings.cases import training

PROGRAMS = {"torch": "raw", "keras": "keras_fit", "lightning": "lightning_fit", "transformers": "trainer_fit"}


def main(name: str, folder: Path) -> None:
    one = training(name)
    told = folder / "steps"
    steps = int(told.read_text(encoding="utf-8")) if told.exists() else None
    import_module(f"studies.trainings.{PROGRAMS[one.framework]}").run(one, folder, steps)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
