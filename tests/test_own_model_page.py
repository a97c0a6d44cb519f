"""The examples of the pages about models, trainings and operators of one's own run, and make the models they say."""

import re
from pathlib import Path
from typing import Any

import pytest

from epochcast.describe.capture.torch.torchvision_shim import import_torchvision
from epochcast.predict.forecast.forecast import Forecast

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"
PAGES = [HOW_TO / f"your-own-{subject}.md" for subject in ("model", "training", "operator")]
EXAMPLE = re.compile(r"```python\n(.*?)# parameters: (\d+)\n```", re.DOTALL)
EXAMPLES = [
    (section.partition("\n")[0], *found.groups())
    for page in PAGES
    for section in page.read_text(encoding="utf-8").split("\n## ")[1:]
    if (found := EXAMPLE.search(section))
]


def test_there_are_ten_of_them() -> None:
    assert len(EXAMPLES) >= 10


@pytest.mark.usefixtures("restored_operators")
@pytest.mark.parametrize(("title", "code", "parameters"), EXAMPLES, ids=[title for title, _, _ in EXAMPLES])
def test_an_example_runs(
    title: str, code: str, parameters: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EPOCHCAST_CACHE", "off")
    import_torchvision()  # transformers imports it
    if "def workload" in code:
        import epochcast as ec

        (tmp_path / "train.py").write_text(code, encoding="utf-8")
        answer: Any = ec.forecast(f"{tmp_path}/train.py:workload", device="A100", batch=64)
    else:
        names: dict[str, Any] = {"__name__": "example"}
        exec(compile(code, title, "exec"), names)
        answer = names["answer"]
    assert isinstance(answer, Forecast)
    assert answer.parameters == int(parameters)
    assert answer.step_parts is not None
    assert answer.step_parts.backward > 0
    assert answer.step_parts.update > 0
    assert answer.opaque_ops == ()
