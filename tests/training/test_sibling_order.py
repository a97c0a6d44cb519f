"""A faster sibling that is slower costs something, one in order nothing."""

import pytest

torch = pytest.importorskip("torch")

from epochcast.predict.cost.software_setting import GENERATIONS  # noqa: E402
from training.network import SUSTAINED  # noqa: E402
from training.sibling_order import ORDER_WEIGHT, SiblingOrder  # noqa: E402

NAMES = ["RTX 3080", "RTX 3090"]
BANDWIDTH, CONV = SUSTAINED.index("bandwidth"), SUSTAINED.index("conv")


@pytest.fixture(scope="module")
def order() -> SiblingOrder:
    order = SiblingOrder(NAMES)
    assert [(NAMES[s], NAMES[f]) for s, f in zip(order.slow.tolist(), order.fast.tolist(), strict=True)] == [
        ("RTX 3080", "RTX 3090")
    ]
    return order


def loss(order: SiblingOrder, column: int, fast: float) -> float:
    """Both sustain all of their data sheets, but the faster e^fast of one figure."""
    sustained = torch.zeros(2, len(SUSTAINED))
    sustained[1, column] = fast
    return float(order.loss(sustained))


def test_siblings_in_the_order_of_their_data_sheets_cost_nothing(order: SiblingOrder) -> None:
    assert loss(order, BANDWIDTH, 0.0) == loss(order, BANDWIDTH, 0.3) == loss(order, CONV, -0.3) == 0


def test_a_faster_sibling_that_is_slower_costs_the_square(order: SiblingOrder) -> None:
    """By hand: the shortfall in bandwidth beyond what the data sheet gives, over all rates; and a group's factor."""
    ahead = float(order.sheet[1, BANDWIDTH] - order.sheet[0, BANDWIDTH])
    assert ahead > 0
    rates = order.first_group
    assert loss(order, BANDWIDTH, -ahead - 0.1) == pytest.approx(ORDER_WEIGHT * 0.1**2 / rates, rel=1e-3)
    assert loss(order, CONV, 1.0) > loss(order, CONV, 0.5) > 0


def test_devices_without_siblings_cost_nothing() -> None:
    assert float(SiblingOrder(["V100-SXM2-16GB", "MI300X"]).loss(torch.randn(2, len(SUSTAINED)))) == 0


def test_a_framework_may_be_slower_on_the_faster_sibling_by_what_rates_and_groups_leave(order: SiblingOrder) -> None:
    """By hand: the least that the data sheet gains in any rate is left, as no group takes longer."""
    framework = SUSTAINED.index("pytorch_2")
    ahead = order.sheet[1] - order.sheet[0]
    gap = float(ahead[~torch.isnan(ahead)].min())
    assert gap > 0 and loss(order, framework, 0.9 * gap) == 0
    over = loss(order, framework, gap + 0.1)
    assert over == pytest.approx(ORDER_WEIGHT * 0.1**2 / len(GENERATIONS), rel=1e-3)
