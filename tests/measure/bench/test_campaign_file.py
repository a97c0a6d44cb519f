from pathlib import Path

import pytest

from epochcast.errors import EpochcastError
from epochcast.measure.bench.campaign_file import read_campaign


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "campaign.toml"


def test_every_combination_is_asked(file: Path) -> None:
    file.write_text('models = ["a", "b"]\nbatches = [1, 2, 4]\noptimizers = ["sgd", "adam"]\nrepetitions = 2\n')
    questions = read_campaign(file, "cpu")
    assert len(questions) == 2 * 3 * 2 * 2
    assert len({q.key for q in questions}) == 24


def test_repetitions_are_the_outermost_loop(file: Path) -> None:
    file.write_text('models = ["a"]\nbatches = [1, 2]\nrepetitions = 2\n')
    asked = [(q.ask["repetition"], q.ask["recipe"]["batch"]) for q in read_campaign(file, "cpu")]
    assert asked == [(0, 1), (0, 2), (1, 1), (1, 2)]


def test_further_runs_take_what_they_do_not_say_from_above(file: Path) -> None:
    file.write_text(
        'batches = [8]\noptimizers = ["adam"]\nseconds = "3s"\n'
        '[[runs]]\nmodels = ["a"]\n[[runs]]\nmodels = ["b"]\nbatches = [2]\nmodes = ["forward", "loader"]\n'
    )
    questions = read_campaign(file, "cuda:0")
    assert [(q.ask["model"], q.ask["recipe"]["batch"], q.ask["part"]) for q in questions] == [
        ("a", 8, "step"),
        ("b", 2, "step"),
        ("b", 2, "loader"),
    ]
    assert {q.ask["recipe"]["optimizer"] for q in questions} == {"adam"}
    assert {(q.limit_seconds, q.ask["device"]) for q in questions} == {(3.0, "cuda:0")}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('modelz = ["a"]\n', "no key called 'modelz'; known: backend, batches, data, "),
        ('models = ["a"]\nbatches = [4]\n[[runs]]\nbatch = [4]\n', "campaign.toml, run 1: no key called 'batch'"),
        ('models = ["a"]\n', "campaign.toml: batches is missing"),
        ("batches = [4]\n", "campaign.toml: models is missing"),
        ('models = "a"\n', "models must be a list of names, got 'a'"),
        ('models = ["a"]\nbatches = [true]\n', "batches must be a list of whole numbers"),
        ('models = ["a"]\nbatches = [0]\n', "campaign.toml: batch must be at least 1, got 0"),
        ('models = ["a"]\nbatches = [1]\nrepetitions = 0\n', "repetitions must be a whole number of at least 1"),
        ('models = ["a"]\nbatches = [1]\noptimizers = ["sdg"]\n', "campaign.toml: no optimizer called 'sdg'"),
        ('models = ["a"]\nbatches = [1]\nmodes = ["train"]\n', "campaign.toml: no mode called 'train'"),
        ('models = ["a"]\nbatches = [1]\nbackend = "jax"\n', "campaign.toml: no backend called 'jax'"),
        ('models = ["a"]\nbatches = [1]\nseconds = "soon"\n', "'soon' is not a time"),
        ('models = ["a"]\nbatches = [1]\ninputs = { b = "3x4" }\n', "no model of `inputs` called 'b'"),
        ('models = ["a"]\nbatches = [1]\nrepetitions = 9223372036854775808', "are the repetitions right?"),
        ('models = ["a"]\nbatches = [1]\nrepetitions = 1000000000', "are the repetitions right?"),
        ("models = [", "campaign.toml is not TOML"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(file: Path, text: str, words: str) -> None:
    file.write_text(text)
    with pytest.raises(EpochcastError) as caught:
        read_campaign(file, "cpu")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(EpochcastError, match="no campaign file"):
        read_campaign(tmp_path / "none.toml", "cpu")
