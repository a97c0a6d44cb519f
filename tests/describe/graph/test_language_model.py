"""Which networks are language models: by tokens and scores of a vocabulary, not by their names."""

from epochcast.describe.capture.zoo import ZOO, zoo_model
from epochcast.describe.graph.language_model import is_language_model, vocabulary_size

OTHERS = ("bert_base_classification", "bert_base_squad", "clip_vit_b_32", "dlrm", "ncf", "resnet18", "vit_b_16")
LANGUAGE = ("bert_base_mlm", "gpt2", "gpt2_medium", "llama3_8b", "lstm_lm", "t5_small", "transformer")


def test_a_language_model_scores_every_word_it_looks_up() -> None:
    assert {name for name in (*OTHERS, *LANGUAGE) if is_language_model(zoo_model(name).graph(1))} == set(LANGUAGE)


# GPT-2 has 50,257 words and looks up 1,024 positions; the medium one has layers of 1,024 values, too
def test_positions_are_no_vocabulary() -> None:
    assert vocabulary_size(zoo_model("gpt2_medium").graph(1)) == 50257


def test_no_network_for_images_is_one() -> None:
    wrong = [
        name
        for name in ZOO
        if name.startswith(("resnet", "vgg", "densenet", "mobilenet", "unet"))
        and is_language_model(zoo_model(name).graph(1))
    ]
    assert wrong == []
