"""What a decoder runs per token, read from its graph."""

import pytest

from epochcast.describe.capture.resolve import find_model
from epochcast.predict.decode.decoder_shape import DecoderShape, NotGenerating, decoder_shape

SMALL = "decoder:layers=2,hidden=512,heads=8,kv_heads=2,ffn=1024,vocab=1000"


def shape_of(reference: str, tokens: int = 64) -> DecoderShape:
    return decoder_shape(find_model(reference, (tokens,)).graph(1))


def test_a_small_decoder_by_hand() -> None:
    shape = shape_of(SMALL)
    # query, key and value: 512 -> 512 + 2·128; output 512 -> 512; gate and up: 512 -> 2048; down: 1024 -> 512
    assert sorted((each.k, each.n, each.count) for each in shape.products) == [
        (512, 512, 2),
        (512, 768, 2),
        (512, 1000, 1),
        (512, 2048, 2),
        (1024, 512, 2),
    ]
    assert shape.layers == 2
    assert shape.cached_values_per_token == 2 * 2 * 2 * 64
    assert shape.layer_weights == 2 * (512 * 768 + 512 * 512 + 512 * 2048 + 1024 * 512)


def test_products_that_read_one_tensor_are_one_kernel() -> None:
    """Llama's graph has three products for queries, keys and values, and two for gate and up."""
    shape = shape_of("llama3_8b")
    assert {(each.k, each.n) for each in shape.products if not each.is_head} == {
        (4096, 4096 + 2 * 1024),
        (4096, 4096),
        (4096, 2 * 14336),
        (14336, 4096),
    }


def test_the_length_of_the_graph_changes_nothing() -> None:
    assert shape_of("llama3_8b", 64).products == shape_of("llama3_8b", 2048).products


def test_experts_count_those_that_work_on_a_token() -> None:
    shape = shape_of("mixtral_8x7b", 512)
    experts = [each for each in shape.products if each.experts > 1]
    assert {(each.experts, each.chosen) for each in experts} == {(8, 2.0)}
    assert experts[0].read_fraction(1) == pytest.approx(0.25)
    assert experts[0].read_fraction(1000) == pytest.approx(1.0)


def test_a_window_bounds_what_is_cached() -> None:
    shape = shape_of("google/gemma-3-1b-pt", 1024)
    full = sum(each.cached_values_per_token for each in shape.attentions if not each.window)
    windows = {each.window: each.read_tokens(100_000) for each in shape.attentions}
    assert windows == {512: 512, 0: 100_000}
    assert full < shape.cached_values_per_token


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("t5_small", "attends to later tokens"),
        ("bert_base", "scores no vocabulary"),
        ("deepseek_v3", "multi-head latent attention"),
    ],
)
def test_other_networks_are_refused_in_one_line(model: str, words: str) -> None:
    with pytest.raises(NotGenerating, match=words) as raised:
        shape_of(model)
    assert "\n" not in str(raised.value)
