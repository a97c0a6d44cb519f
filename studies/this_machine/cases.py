"""Which networks are benched, and which are trained afterwards to see how well they were forecast."""

from collections.abc import Mapping
from dataclasses import dataclass

BERT_TINY = "hf:BertConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512)"

# Within the bench budget; none of them is trained below.
BENCHED: Mapping[str, tuple[int, ...]] = {
    "squeezenet1_1": (4,),
    "mnist_cnn_2conv": (64, 512),
    BERT_TINY: (8,),
    "torchvision:shufflenet_v2_x1_0": (4,),
    "alexnet": (4, 16),
    "resnet34": (1,),
    "timm:mixer_s32_224": (4,),
    "efficientnet_b0": (2,),
}
BENCHED_INPUTS: Mapping[str, str] = {BERT_TINY: "128"}
BENCHED_KERAS: Mapping[str, tuple[int, ...]] = {
    "studies.this_machine.keras_networks:narrow": (16, 128),
    "studies.this_machine.keras_networks:wide": (4,),
}


@dataclass(frozen=True)
class Case:
    """A network trained for real at some batch sizes, so small that a step takes no more than about two seconds."""

    model: str
    batches: tuple[int, ...]
    optimizer: str = "sgd"


TRAINED = (
    Case("mnist_cnn", (32, 128, 512)),
    Case("cifar10_cnn", (16, 64, 256)),
    Case("patch_camelyon_prefix", (1, 4)),
    Case("resnet18", (2, 8)),
    Case("resnet50", (1, 4)),
    Case("vgg11", (1, 2)),
    Case("densenet121", (1, 4)),
    Case("mobilenet_v2", (2, 8)),
    Case("vit_tiny", (2, 8)),
    Case("bert_mini", (2, 8), "adamw"),
    Case("gpt2_mini", (2, 8), "adamw"),
    Case("lstm_wikitext2", (4, 16)),
    Case("r3d_small", (1, 4)),
)
KERAS = (
    Case("mnist_cnn", (32, 128)),
    Case("cifar10_cnn", (16, 64)),
    Case("patch_camelyon_cnn", (2, 4)),
)
SCALED = (
    ("ddp", Case("mnist_cnn", (128,))),
    ("ddp", Case("cifar10_cnn", (64,))),
    ("ddp", Case("resnet18", (4,))),
    ("mirrored", Case("mnist_cnn", (128,))),
    ("mirrored", Case("cifar10_cnn", (64,))),
    ("mirrored", Case("patch_camelyon_cnn", (2,))),
    ("multi_worker_mirrored", Case("mnist_cnn", (128,))),
    ("multi_worker_mirrored", Case("cifar10_cnn", (64,))),
)
