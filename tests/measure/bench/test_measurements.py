import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochcast.errors import BadInput
from epochcast.measure.bench.measurements import Appender, MeasuredMachine, Measurement, read

HERE = MeasuredMachine("abc", {"cpu": "a processor", "threads": 2})


def row(key: str, seconds: float = 0.5, machine: MeasuredMachine = HERE) -> Measurement:
    return Measurement("op", key, machine, {"device": "cpu", "ops": {}}, seconds, 0.4, 0.1, 7, None)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "m.jsonl"
    with Appender(path) as out:
        for key in ("one", "two", "three"):
            out.append(row(key))
    return path


def test_rows_come_back_as_they_were(file: Path) -> None:
    found = read(file)
    assert found.rows == (row("one"), row("two"), row("three"))
    assert (found.machines, found.warnings) == ({"abc": HERE}, ())


def test_a_machine_is_written_once_before_its_rows(file: Path) -> None:
    kinds = [json.loads(line)["kind"] for line in file.read_text().splitlines()]
    assert kinds == ["machine", "op", "op", "op"]


def test_a_second_campaign_appends(file: Path) -> None:
    there = MeasuredMachine("def", {"cpu": "another"})
    with Appender(file) as out:
        assert out.before.keys(HERE) == {"one", "two", "three"}
        out.append(row("one", machine=there))
    assert [r.machine.id for r in read(file).rows] == ["abc", "abc", "abc", "def"]


def test_a_file_cut_mid_row_keeps_its_whole_rows_and_says_so(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])
    found = read(file)
    assert [r.key for r in found.rows] == ["one", "two"]
    assert found.warnings == ("m.jsonl has an incomplete last row; the complete rows before it are used",)
    with Appender(file) as out:
        out.append(row("three"))
    assert [r.key for r in read(file).rows] == ["one", "two", "three"]
    assert read(file).warnings == ()


@given(cut=st.integers(min_value=0, max_value=2000))
@settings(max_examples=60, deadline=None)
def test_wherever_it_is_cut_no_row_is_invented(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "m.jsonl"
    with Appender(path) as out:
        out.append(row("one"))
        out.append(row("two"))
    content = path.read_bytes()
    path.write_bytes(content[: min(cut, len(content))])
    assert [r.key for r in read(path).rows] == ["one", "two"][: max(0, path.read_bytes().count(b"\n") - 1)]


def test_a_doubled_row_counts_once(file: Path) -> None:
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines, lines[1]]))
    found = read(file)
    assert len(found.rows) == 3
    assert "'one' was measured before" in found.warnings[0]


def test_a_failed_row_has_a_reason_and_no_seconds() -> None:
    failed = Measurement("model", "big", HERE, {}, failed="out of memory: 12 GiB")
    assert failed.as_dict()["failed"] == "out of memory: 12 GiB"
    with pytest.raises(BadInput, match="either seconds or a reason"):
        Measurement("model", "big", HERE, {})


@pytest.mark.parametrize("content", [b"my thesis, without a line break", b"{", b'{"kind":"machine","mach', b"\x00\xff"])
def test_a_file_that_is_not_ours_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "thesis.txt"
    path.write_bytes(content)
    if content.startswith(b"{"):  # the beginning of our own first line, as a kill leaves it
        with Appender(path) as out:
            out.append(row("one"))
        assert [r.key for r in read(path).rows] == ["one"]
        return
    with pytest.raises(BadInput, match="is no measurement file, and it is not written to"):
        Appender(path)
    assert path.read_bytes() == content


def test_a_file_of_other_lines_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("one\ntwo, and no line break at the end")
    with pytest.raises(BadInput, match="line 1 is not JSON"):
        Appender(path)
    assert path.read_text() == "one\ntwo, and no line break at the end"


def test_two_processes_cannot_write_one_file(file: Path) -> None:
    with Appender(file), pytest.raises(BadInput, match=r"another process is measuring into m.jsonl"):
        Appender(file)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nonsense", "line 5 is not JSON"),
        ("[1]", "line 5 must be a JSON object"),
        ('{"kind":"op","key":"k","machine":"xyz","question":{},"seconds":1}', "machine 'xyz' is not described"),
        ('{"kind":"op","key":"k","machine":"abc","question":{},"second":1}', "no key called 'second'"),
        ('{"kind":"opp","key":"k","machine":"abc","question":{},"seconds":1}', "no kind of measurement called 'opp'"),
        ('{"kind":"op","key":"k","machine":"abc","question":{},"seconds":"1"}', "seconds must be a number"),
        ('{"kind":"op","key":"k","machine":"abc","question":{},"seconds":-1}', "seconds must be positive"),
        ('{"kind":"op","key":"k","machine":"abc","seconds":1}', "has no question"),
    ],
)
def test_a_wrong_line_is_refused_by_its_number(file: Path, line: str, words: str) -> None:
    with file.open("a") as stream:
        stream.write(line + "\n")
    with pytest.raises(BadInput, match="line 5") as caught:
        read(file)
    assert words in str(caught.value)


def test_a_missing_file_and_a_missing_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no measurement file"):
        read(tmp_path / "none.jsonl")
    with pytest.raises(BadInput, match="no folder"):
        Appender(tmp_path / "none" / "m.jsonl")
