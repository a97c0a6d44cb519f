"""Figures of well-known trainings, as the study asks for them."""

import pytest
from tests.every import every

import epochcast as ec
from studies.public_figures.run import FIGURES, PAGE, Figure

# Parameters that the tables of LLM Foundry give beside their figures.
PARAMETERS = {
    "MPT 125M, 8 × A100 80 GB, FSDP": 125_311_488,
    "MPT 1B, 8 × A100 80 GB, FSDP": 1_315_950_592,
    "MPT 7B, 8 × A100 80 GB, FSDP": 6_658_859_008,
    "MPT 13B, 8 × A100 80 GB, FSDP": 12_853_954_560,
}


@every("figure", FIGURES, ids=lambda figure: figure.training)
def test_every_figure_has_a_source_and_is_on_the_page(figure: Figure) -> None:
    assert figure.source
    assert f"| {figure.training} |" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("training", PARAMETERS)
def test_models_written_by_their_sizes_have_the_published_number_of_parameters(training: str) -> None:
    job = next(figure.job for figure in FIGURES if figure.training == training)
    assert ec.inspect(job["model"], input_shape=job["input_shape"]).parameters == pytest.approx(
        PARAMETERS[training], rel=2e-3
    )
