import pytest

from epochcast.measure.tables.run_lengths import length_distribution, says_lengths


@pytest.mark.parametrize(
    ("row", "lengths"),
    [
        ({"input_shape": "seq<=768 (mean 210)"}, "mean=210,max=768,padded"),
        ({"input_shape": "mean 210, max 768", "note": "bucketed by length"}, "mean=210,max=768,bucketed"),
        ({"input_shape": "max 512", "note": "texts of 900±700 tokens"}, "mean=900,std=700,max=512,cut,padded"),
        (
            {"input_shape": "max 512", "note": "texts of 900±700 tokens", "framework": "transformers+peft (swift)"},
            "mean=900,std=700,max=512,dropped,padded",
        ),
        (
            {"input_shape": "seq<=2048", "source": "ms_swift", "framework": "pytorch+transformers+swift"},
            "mean=3234,std=2548,max=2048,dropped,padded",
        ),
        ({"input_shape": "seq<=2048"}, "mean=1024,max=2048,padded"),
        ({"input_shape": "512"}, None),
    ],
)
def test_lengths_of_a_row(row: dict[str, object], lengths: str | None) -> None:
    assert length_distribution(row) == lengths


def test_a_named_data_set_has_its_own_mean_and_longest_text() -> None:
    assert length_distribution({"input_shape": "max 2048 (alpaca, padded to longest)"}) == "mean=120,max=1304,padded"
    assert length_distribution({"input_shape": "max 512 (alpaca)"}) == "mean=120,max=512,padded"
    assert says_lengths({"input_shape": "max 512 (alpaca)"})
