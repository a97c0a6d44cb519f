from functools import partial

import pytest

import epochcast as ec
from epochcast.errors import BadInput

torch = pytest.importorskip("torch")


def test_dtypes_are_precisions() -> None:
    found = [ec.Job("resnet18", precision=dtype).precision for dtype in (torch.float16, torch.bfloat16, torch.float32)]
    assert found == ["fp16", "bf16", "fp32"]


def test_optimizers_may_be_classes_and_instances() -> None:
    weight = torch.nn.Parameter(torch.zeros(1))
    optim = torch.optim
    given = [
        optim.Adam,
        optim.AdamW,
        optim.SGD,
        optim.SGD([weight], lr=0.1),
        optim.SGD([weight], lr=0.1, momentum=0.9),
        optim.SGD([weight], lr=0.1, momentum=0.9, nesterov=True),
        partial(optim.SGD, momentum=0.9),
        optim.RMSprop([weight]),
    ]
    names = [ec.Job("resnet18", optimizer=one).optimizer for one in given]
    assert names == ["adam", "adamw", "sgd", "sgd", "momentum", "nesterov", "momentum", "rmsprop"]


@pytest.mark.parametrize("name", ["precision", "optimizer"])
@pytest.mark.parametrize("value", [3, torch.nn.Linear, object(), ["adam"]])
def test_what_stands_for_no_name_is_refused(name: str, value: object) -> None:
    with pytest.raises(BadInput, match=f"{name} must be text"):
        ec.Job("resnet18", **{name: value})  # type: ignore[arg-type]  # on purpose
