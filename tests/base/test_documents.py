import gzip
import time
from pathlib import Path

import pytest

from epochcast.base import documents
from epochcast.base.bounds import MOST_NESTING
from epochcast.base.documents import parse_json, parse_toml, read_text, unzipped
from epochcast.errors import BadInput


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested more than"),
        ('{"a":' * 100_000, "nested more than"),
        ("[[]," * (MOST_NESTING + 1) + "0" + "]" * (MOST_NESTING + 1), "nested more than"),
        ("9" * 5000, "a number with too many digits"),
        ('"\\' * 100_000, "is not JSON"),
        (b"\xff\xfe{}", "is not text in UTF-8"),
        ("", "is not JSON"),
    ],
)
def test_json_that_is_none_is_refused_in_one_line(text: str | bytes, message: str) -> None:
    began = time.process_time()
    with pytest.raises(BadInput, match=message) as caught:
        parse_json(text, "a.json")
    assert str(caught.value).startswith("a.json ") and "\n" not in str(caught.value)
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a" + ".a" * 50_000 + " = 1", "a key of more than 100 parts"),
        ("[a" + ' . "a"' * 50_000 + "]", "a key of more than 100 parts"),
        ("x = {y" + ".a" * 50_000 + " = 1}", "a key of more than 100 parts"),
        ("x = " + "[" * 100_000, "nested more than"),
        ("x = 2030-13-41", "is not TOML"),
        ("x = " + "9" * 5000, "is not TOML"),
    ],
)
def test_toml_that_is_none_is_refused_in_one_line(text: str, message: str) -> None:
    began = time.process_time()
    with pytest.raises(BadInput, match=message):
        parse_toml(text, "a.toml")
    assert time.process_time() - began < 1


def test_a_text_with_many_dots_is_no_key() -> None:
    words = "a." * 1000
    assert parse_toml(f'x = "{words}"\ny.z = 1', "a.toml") == {"x": words, "y": {"z": 1}}


def test_a_document_as_deep_as_real_ones_is_read() -> None:
    depth = MOST_NESTING - 1
    assert parse_json("[" * depth + "]" * depth, "a.json")


def test_a_file_that_unpacks_to_more_than_a_document_is_refused() -> None:
    bomb = gzip.compress(b"0" * 2_000_000)
    with pytest.raises(BadInput, match="more than 1,000,000 bytes when it is unpacked"):
        unzipped(bomb, "a.gz", 1_000_000)
    with pytest.raises(BadInput, match="damaged"):
        unzipped(bomb[:-4], "a.gz")
    flipped = bytearray(bomb)
    flipped[len(bomb) // 2] ^= 4
    with pytest.raises(BadInput, match="damaged"):
        unzipped(bytes(flipped), "a.gz")


def test_a_file_that_is_too_large_or_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"x" * 11)
    with pytest.raises(BadInput, match="more than 10 bytes"):
        read_text(file, 10)
    file.write_bytes(b"\xe4")
    with pytest.raises(BadInput, match="not text in UTF-8"):
        documents.read_text(file)
