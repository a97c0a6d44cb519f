import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from epochcast.errors import BadInput, UnknownName
from epochcast.predict.forecast.job_file import append_job, find_job_file, line_of, read_job, read_jobs, schema

FILE = """\
[defaults]
device = "A100"
precision = "amp"
batch = 32

[[job]]
name = "imagenet"
model = "resnet50"
dataset = "imagenet-1k"
epochs = 90
gpus = 8

[[job]]
name = "small"
model = "resnet18"
global_batch = 256
input_shape = "3x64x64"
loader_seconds = "8ms"
precision = "fp32"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "epochcast.toml"
    file.write_text(FILE)
    return file


def test_jobs_have_the_defaults_unless_they_say_otherwise(path: Path) -> None:
    imagenet, small = read_jobs(path)
    assert (imagenet.name, imagenet.job.model, imagenet.job.batch, imagenet.job.precision) == (
        "imagenet",
        "resnet50",
        32,
        "amp_fp16",
    )
    assert (imagenet.where.device, imagenet.where.gpus) == ("A100", 8)
    assert (small.job.batch, small.job.global_batch, small.job.precision) == (None, 256, "fp32")
    assert (small.job.input_shape, small.job.loader_seconds) == ((3, 64, 64), 0.008)


def test_the_nearest_file_upward_counts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = path.parent / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert find_job_file() == path
    assert read_job("small").job.model == "resnet18"


def test_without_a_file_it_is_said_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no epochcast.toml in .* or above it; `epochcast jobs init` writes one"):
        find_job_file(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[[job]]\nname = 'a'\nmodel = 'resnet50'\nbatchs = 3\n",
            "epochcast.toml, line 4: no option called 'batchs'; near",
        ),
        (
            "[[job]]\nname = 'a'\nmodel = 'resnet50'\nloader_seconds = '8'\n",
            "loader_seconds 8: give a unit, for example 8ms",
        ),
        ("[defaults]\n\nepoch = 3\n", "epochcast.toml, line 3: no option called 'epoch'; near: epochs"),
        ("[[jobs]]\nname = 'a'\n", "epochcast.toml, line 1: no table called 'jobs'; known: defaults, job"),
        ("[[job]]\nmodel = 'resnet50'\n", "epochcast.toml, line 1: a job needs a name"),
        ("[[job]]\nname = 'a'\n", "epochcast.toml, line 2: job 'a' has no model"),
        (
            "[[job]]\nname = 'a'\nmodel = 'x'\n[[job]]\nname = 'b'\nmodel = 'x'\nbatch = 2.5\n",
            "epochcast.toml, line 7: batch must be a whole number",
        ),
        ("[[job]]\nname = 'a'\nmodel = 'x'\nbatch = 1\nglobal_batch = 2\n", "line 2: job 'a': a job has one batch"),
        ("[[job]]\nname = 'a'\nmodel = 'x'\n[[job]]\nname = 'a'\nmodel = 'x'\n", "line 5: two jobs are called 'a'"),
        ("[[job]]\nname = 'a'\nmodel = 'x'\nprecision = 'fp33'\n", "line 2: job 'a': no precision called 'fp33'"),
        ("job = 3\n", "epochcast.toml: jobs are tables"),
        ("[[job]\n", "epochcast.toml is not TOML: "),
    ],
)
def test_what_is_wrong_is_said_with_file_line_and_near_keys(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "epochcast.toml").write_text(text)
    with pytest.raises(BadInput, match=message):
        read_jobs(tmp_path / "epochcast.toml")


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "epochcast.toml").write_bytes(b"\xff\xfe[job]")
    with pytest.raises(BadInput, match="is not text in UTF-8"):
        read_jobs(tmp_path / "epochcast.toml")


def test_an_unknown_job_names_the_known_ones(path: Path) -> None:
    with pytest.raises(UnknownName, match=r"no job in epochcast.toml called 'imagnet'; known: imagenet, small"):
        read_job("imagnet", path)


def test_a_line_is_found_in_the_right_table() -> None:
    assert [line_of(FILE, place, "precision") for place in (-1, 1)] == [3, 19]
    assert line_of(FILE, 0, "absent") == 6


def test_a_job_is_appended_and_the_rest_of_the_file_stays(path: Path) -> None:
    options = {"model": "vgg16", "device": "V100", "freeze": ("features.*",), "batch": 8, "aux": False, "samples": None}
    append_job(path, "third", options)
    assert path.read_text().startswith(FILE)
    third = read_job("third", path)
    assert (third.job.freeze, third.job.batch, third.job.aux) == (("features.*",), 8, False)
    with pytest.raises(BadInput, match="has a job called 'third' already"):
        append_job(path, "third", {"model": "vgg16"})
    with pytest.raises(BadInput, match="a job's name has letters"):
        append_job(path, "a b", {"model": "vgg16"})


def test_text_with_quotes_and_control_characters_is_written_safely(tmp_path: Path) -> None:
    odd = 'a "b" \\ \n\t é'
    append_job(tmp_path / "epochcast.toml", "odd", {"model": "x", "freeze": [odd]})
    assert read_job("odd", tmp_path / "epochcast.toml").job.freeze == (odd,)


def test_a_model_file_is_looked_for_beside_the_job_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net.py").write_text("")
    (tmp_path / "epochcast.toml").write_text("[[job]]\nname = 'a'\nmodel = 'net.py:make'\n")
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    assert read_job("a").job.model == f"{tmp_path / 'net.py'}:make"


def test_the_shipped_schema_is_that_of_the_options(matches: Callable[[Path, str], None]) -> None:
    shipped = Path(str(files("epochcast.predict.forecast") / "epochcast.schema.json"))
    matches(shipped, json.dumps(schema(), indent=2) + "\n")


def test_a_job_is_written_as_it_was_asked_whatever_the_defaults_say(path: Path) -> None:
    append_job(path, "plain", {"model": "vgg16", "device": "V100", "batch": 8})
    plain = read_job("plain", path)
    assert (plain.job.precision, plain.job.batch, plain.where.device) == ("auto", 8, "V100")
    with pytest.raises(BadInput, match=r"\[defaults\] of epochcast.toml has device, which this job does not"):
        append_job(path, "nowhere", {"model": "vgg16", "batch": 8})
