import pytest
from tests.every import every

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.predict.forecast.strategies.tensor_parallel import parameter_fraction, rank_of


def trace(name: str = "gpt2", precision: str = "fp32", attention: str = "flash") -> Trace:
    return zoo_model(name).trace(Recipe(2, precision=precision, attention=attention, optimizer="adam"))


@every("name", ["gpt2", "tinyllama_1_1b", "bert_base_mlm", "vit_b_16"])
@every("precision", ["fp32", "amp_bf16"])
def test_a_rank_of_four_does_a_quarter_of_the_products(name: str, precision: str) -> None:
    whole = trace(name, precision)
    rank = rank_of(whole, 4).trace
    assert rank.flops["matrix"] == pytest.approx(whole.flops["matrix"] / 4, rel=0.02)
    assert parameter_fraction(whole, rank) == pytest.approx(1 / 4, rel=0.05)


def test_a_block_sums_twice_forward_and_twice_backward() -> None:
    """Twelve blocks of four, the embedding, and the output layer's data gradient (Shoeybi et al. 2019)."""
    rank = rank_of(trace(), 2)
    assert len(rank.sums) == 12 * 4 + 2
    assert {size for _, _, size in rank.sums} == {1024 * 768 * 4}  # bytes per sample


def test_eager_attention_is_split_by_heads_too() -> None:
    whole = trace(attention="eager")
    assert rank_of(whole, 2).trace.flops["matrix"] == pytest.approx(whole.flops["matrix"] / 2, rel=0.01)


def test_a_rank_resizes_as_the_whole_does() -> None:
    small = rank_of(trace(), 2).trace
    large = rank_of(trace().rebatch(8), 2).trace
    assert large.flops["matrix"] == pytest.approx(4 * small.flops["matrix"], rel=0.01)


def test_one_rank_is_the_whole() -> None:
    whole = trace()
    assert rank_of(whole, 1).trace is whole


@pytest.mark.parametrize(
    ("name", "degree", "message"),
    [
        ("gpt2", 5, "tensor parallel over 5 GPUs does not divide the 12 heads of gpt2"),
        ("resnet18", 2, "resnet18 has no two products to split one behind the other"),
    ],
)
def test_what_cannot_be_split_is_refused(name: str, degree: int, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        rank_of(trace(name), degree)
