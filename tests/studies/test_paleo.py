import pytest
from tests.every import every

from studies.paleo.networks import alexnet, nin, vgg16
from studies.paleo.run import PAGE, RESULT, TOLERANCE, Figure, as_csv, figures, page

FIGURES = figures()


@every("figure", [f for f in FIGURES if f.paleo is not None], ids=lambda f: f.what)
def test_paleos_figure_follows_from_its_own_assumptions(figure: Figure) -> None:
    assert figure.ours == pytest.approx(figure.paleo, rel=TOLERANCE)


def test_eighteen_figures_are_held_to_the_tolerance() -> None:
    assert sum(figure.paleo is not None for figure in FIGURES) == 18
    assert TOLERANCE == 0.05


@pytest.mark.parametrize("figure", [f for f in FIGURES if f.is_measured], ids=lambda f: f.what)
def test_krizhevskys_hours_follow_from_those_of_one_gpu(figure: Figure) -> None:
    assert figure.ours == pytest.approx(figure.measured, rel=TOLERANCE)


def test_the_committed_page_is_what_the_study_computes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(FIGURES), "renew it with: python -m studies paleo"


def test_the_committed_result_is_what_the_study_computes() -> None:
    assert RESULT.read_text(encoding="utf-8") == as_csv(FIGURES), "renew it with: python -m studies.paleo.run"


# PALEO's own summaries count biases too: one per output channel of every layer.
def test_the_networks_have_the_published_sizes() -> None:
    assert alexnet(1).parameter_count + 10_472 == 50_303_912
    assert vgg16(1).parameter_count + 13_416 == 138_357_544
    assert nin(1).parameter_count + 5_256 == 7_595_176


def test_slices_divide_the_wide_layers_and_nothing_else() -> None:
    whole, part = alexnet(1, conv4=256), alexnet(1, conv4=256, slices=4)
    assert whole.parameter_count - part.parameter_count == (26_214_400 + 16_777_216) * 3 // 4
