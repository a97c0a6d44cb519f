from dataclasses import replace
from math import prod

import pytest
from tests.every import every

from epochcast.describe.datasets import Dataset, datasets, find_dataset, load_datasets
from epochcast.errors import BadInput, UnknownName


@pytest.mark.parametrize(
    ("name", "training", "validation", "shape", "classes"),
    [
        ("mnist", 60_000, 10_000, (1, 28, 28), 10),
        ("cifar10", 50_000, 10_000, (3, 32, 32), 10),
        ("imagenet-1k", 1_281_167, 50_000, (3, 224, 224), 1000),
        ("patch-camelyon", 262_144, 32_768, (3, 96, 96), 2),
        ("ucf101", 9_537, 3_783, (3, 16, 112, 112), 101),
        ("coco", 118_287, 5_000, (3, 800, 1333), 80),
    ],
)
def test_the_counts_are_those_of_the_papers(
    name: str, training: int, validation: int, shape: tuple[int, ...], classes: int
) -> None:
    dataset = find_dataset(name)
    assert (dataset.training_samples, dataset.validation_samples) == (training, validation)
    assert (dataset.sample_shape, dataset.classes) == (shape, classes)


@pytest.mark.parametrize("said", ["imagenet", "ImageNet_1K", "IMAGENET 1k", "ilsvrc2012"])
def test_case_and_punctuation_do_not_count(said: str) -> None:
    assert find_dataset(said).name == "imagenet-1k"


def test_imagenet_is_about_147_gigabytes() -> None:
    dataset = find_dataset("imagenet")
    assert dataset.training_samples * dataset.bytes_per_sample == pytest.approx(147e9, rel=0.01)


@every("dataset", datasets(), ids=lambda dataset: dataset.name)
def test_every_dataset_says_where_its_figures_come_from(dataset: Dataset) -> None:
    assert len(dataset.source) > 10
    assert dataset.training_samples > dataset.validation_samples
    if dataset.unit == "image":
        assert dataset.bytes_per_sample <= 4 * prod(dataset.sample_shape)


def test_the_twelve_named_datasets_are_there() -> None:
    assert len(datasets()) >= 12


def test_an_unknown_dataset_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match=r"no dataset called 'imagnet'; .*imagenet-1k"):
        find_dataset("imagnet")


def test_a_dataset_without_samples_names_file_and_row() -> None:
    text = (
        '[[dataset]]\nname = "none"\ntask = "t"\nkind = "text"\nunit = "u"\n'
        "training_samples = 0\nvalidation_samples = 0\n"
        'sample_shape = [1]\nbytes_per_sample = 1\nsource = "s"\nverified = true\n'
    )
    with pytest.raises(
        BadInput, match=r"datasets.toml, \[\[dataset\]\] row 1 \(none\): training_samples must be at least 1"
    ):
        load_datasets(text)


def test_a_mean_length_is_that_of_texts_and_has_a_source() -> None:
    alpaca = find_dataset("alpaca")
    assert alpaca.mean_tokens == 120 and alpaca.mean_tokens_source
    for options, problem in (
        ({"mean_tokens_source": ""}, "need a source"),
        ({"mean_tokens": 900.0}, "between 1 and 512"),
        ({"unit": "token"}, "counts tokens"),
    ):
        with pytest.raises(BadInput, match=problem):
            replace(alpaca, **options)
