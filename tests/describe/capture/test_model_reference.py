"""References of models, taken apart and put together again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.describe.capture.model_reference import PREFIXES, ModelReference


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_prefix_is_no_code_of_the_user(prefix: str) -> None:
    reference = ModelReference.of(f"{prefix}:some_name")
    assert (reference.prefix, reference.name, reference.module) == (prefix, "some_name", "")
    assert not reference.is_code


@pytest.mark.parametrize(
    ("text", "module", "factory", "script"),
    [
        ("net.py:make", "net.py", "make", "net.py"),
        ("package.module:Net.small", "package.module", "Net.small", ""),
        ("resnet50", "", "", ""),
        ("torchvision:resnet50", "", "", ""),
    ],
)
def test_a_factory_is_in_a_script_or_in_a_package(text: str, module: str, factory: str, script: str) -> None:
    reference = ModelReference.of(text)
    assert (reference.module, reference.factory, reference.script) == (module, factory, script)
    assert reference.is_code == bool(factory)


def test_a_script_alone_is_code_and_a_model_file_is_not() -> None:
    assert ModelReference.of("train.py").is_code
    assert not any(ModelReference.of(text).is_code for text in ("net.onnx", "net.KERAS", "hf:config.json", "vgg16"))


def test_another_file_keeps_the_rest_of_the_reference() -> None:
    assert ModelReference.of("net.py:make").with_file("/a/net.py") == "/a/net.py:make"
    assert ModelReference.of("hf:config.json").with_file("b/config.json") == "hf:b/config.json"


@given(text=st.text())
def test_the_parts_are_the_whole(text: str) -> None:
    assert str(ModelReference.of(text)) == text
