"""Every convolutional network of the zoo against what was published: parameters to the unit, multiply-adds to 1 %."""

import sys
from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.every import every

from epochcast.describe.capture.zoo import ZOO, zoo_model
from epochcast.describe.capture.zoo.convnets import CONVNETS, FACES
from epochcast.describe.capture.zoo.mobilenet import divisible
from epochcast.describe.graph.backward import differentiable
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.op_kinds import Conv, Copy, Elementwise, Kind, Matmul, Norm, Pool
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput, UnknownName


class Published(NamedTuple):
    """`gmacs` are billions of multiply-adds of one sample's forward pass."""

    parameters: int
    gmacs: float
    source: str


TORCHVISION = "torchvision 0.28, meta of the weights: num_params, _ops"
EYERISS = "Chen et al. 2016 (Eyeriss, ISSCC): 666 M in convolutions; 58.6 M in products by hand, below"
HAND = "by hand, below"
INSIGHTFACE = (
    "insightface: 24.03, 34.14, 43.59 and 65.16 million, 2.63 to 12.12 billion multiply-adds; to the unit by hand"
)

PUBLISHED = {
    "alexnet": Published(61_100_840, 0.714, TORCHVISION),
    "alexnet_two_tower": Published(60_965_224, 0.666 + 0.0586, EYERISS),
    "nin": Published(7_595_176, 1.1001888, HAND),
    "overfeat": Published(145_920_872, 2.801403904, HAND),
    "vgg11": Published(132_863_336, 7.609, TORCHVISION),
    "vgg13": Published(133_047_848, 11.308, TORCHVISION),
    "vgg16": Published(138_357_544, 15.47, TORCHVISION),
    "vgg19": Published(143_667_240, 19.632, TORCHVISION),
    "vgg11_bn": Published(132_868_840, 7.609, TORCHVISION),
    "vgg13_bn": Published(133_053_736, 11.308, TORCHVISION),
    "vgg16_bn": Published(138_365_992, 15.47, TORCHVISION),
    "vgg19_bn": Published(143_678_248, 19.632, TORCHVISION),
    "googlenet": Published(6_624_904, 1.498, TORCHVISION),
    "inception_v3": Published(23_834_568, 5.713, TORCHVISION + " (less 3,326,696 parameters of the head)"),
    "inception_naive": Published(1_089_952, 0.854 * (32 / 28) ** 2, "CS231n 2017, lecture 9: 854 M on 28x28"),
    "inception_reduced": Published(346_720, 0.354418688, HAND),
    "resnet18": Published(11_689_512, 1.814, TORCHVISION),
    "resnet34": Published(21_797_672, 3.664, TORCHVISION),
    "resnet50": Published(25_557_032, 4.089, TORCHVISION),
    "resnet101": Published(44_549_160, 7.801, TORCHVISION),
    "resnet152": Published(60_192_808, 11.514, TORCHVISION),
    "resnext50_32x4d": Published(25_028_904, 4.23, TORCHVISION),
    "resnet200": Published(64_673_832, 15.0075, HAND),
    "resnet18_cifar": Published(11_173_962, 0.55542, HAND),
    "wide_resnet50_2": Published(68_883_240, 11.398, TORCHVISION),
    "resnet20": Published(269_722, 0.04055104, HAND),
    "resnet32": Published(464_154, 0.068862592, HAND),
    "resnet44": Published(658_586, 0.097174144, HAND),
    "resnet56": Published(853_018, 0.125485696, HAND),
    "resnet110": Published(1_727_962, 0.25288768, HAND),
    "densenet121": Published(7_978_856, 2.834, TORCHVISION),
    "densenet161": Published(28_681_000, 7.728, TORCHVISION),
    "densenet169": Published(14_149_480, 3.36, TORCHVISION),
    "densenet201": Published(20_013_928, 4.291, TORCHVISION),
    "mobilenet_v2": Published(3_504_872, 0.301, TORCHVISION),
    "mobilenet_v3_large": Published(5_483_032, 0.217, TORCHVISION),
    "mobilenet_v3_small": Published(2_542_856, 0.057, TORCHVISION),
    "efficientnet_b0": Published(5_288_548, 0.386, TORCHVISION),
    "efficientnet_b1": Published(7_794_184, 0.687, TORCHVISION),
    "efficientnet_b2": Published(9_109_994, 1.088, TORCHVISION),
    "efficientnet_b3": Published(12_233_232, 1.827, TORCHVISION),
    "efficientnet_b4": Published(19_341_616, 4.394, TORCHVISION),
    "squeezenet": Published(1_248_424, 0.819, TORCHVISION),
    "squeezenet1_0": Published(1_248_424, 0.819, TORCHVISION),
    "squeezenet1_1": Published(1_235_496, 0.349, TORCHVISION),
    "unet": Published(31_030_658, 150.42842, HAND),
    "unet_fastmri": Published(7_756_097, 18.8022784, "fastMRI's baseline: 7.76 million; " + HAND),
    "iresnet18": Published(24_025_600, 2.63, INSIGHTFACE),
    "iresnet34": Published(34_139_328, 4.48, INSIGHTFACE),
    "iresnet50": Published(43_590_848, 6.33, INSIGHTFACE),
    "iresnet100": Published(65_156_160, 12.12, INSIGHTFACE),
    "r3d_18": Published(33_371_472, 40.697, TORCHVISION),
    "r3d_34": Published(63_681_104, 75.3782, HAND),
    "mnist_cnn": Published(24_330, 0.0014031, "the report's model.summary(); multiply-adds by hand, below"),
    "mnist_cnn_2conv": Published(113_386, 0.00141, HAND),
    "cifar10_cnn": Published(288_746, 0.0083113, HAND),
    "patch_camelyon_cnn": Published(19_941_381, 2.6983, "the report's model.summary(); multiply-adds by hand, below"),
}
# Where torchvision calls it something else, or has it behind a builder of another name.
TORCHVISION_NAMES = {"squeezenet": "squeezenet1_0"}
FROM_TORCHVISION = [name for name, row in PUBLISHED.items() if row.source.startswith(TORCHVISION)]

every_network = every("name", PUBLISHED)
names = st.sampled_from(sorted(CONVNETS))


def graph(name: str, batch: int = 1, input_shape: tuple[int, ...] | None = None, *, aux: bool = False) -> Graph:
    """A network, by default without its auxiliary heads, as publications count."""
    return zoo_model(name, input_shape, aux=aux or not ZOO[name].has_aux).graph(batch)


def matrix_flops(built: Graph) -> int:
    return sum(op.work.flops for op in built.ops if op.op_class.is_matrix)


def test_every_convnet_of_the_zoo_is_held_against_a_published_count() -> None:
    denoisers = {"sd15_unet", "sd21_unet", "sdxl_unet"}  # held in test_diffusion and by tests of Hub ids
    assert set(PUBLISHED) | denoisers == set(CONVNETS)
    assert set(CONVNETS) <= set(ZOO)


@every_network
def test_parameters_are_the_published_ones(name: str) -> None:
    assert graph(name).parameter_count == PUBLISHED[name].parameters


@every_network
def test_a_published_multiply_add_is_two_flops(name: str) -> None:
    assert matrix_flops(graph(name)) == pytest.approx(2e9 * PUBLISHED[name].gmacs, rel=0.01)


@pytest.mark.parametrize(("name", "parameters"), [("googlenet", 13_004_888), ("inception_v3", 27_161_264)])
def test_auxiliary_heads_have_parameters_and_a_loss_of_their_own(name: str, parameters: int) -> None:
    whole = graph(name, aux=True)
    assert whole.parameter_count == parameters
    assert len(whole.outputs) == {"googlenet": 3, "inception_v3": 2}[name]
    assert {output.shape for output in whole.outputs} == {(1, 1000)}
    assert len(graph(name).outputs) == 1


# Worked by hand: positions · channels out · (channels in · taps), layer by layer.


def test_alexnet_of_the_paper_by_hand() -> None:
    convolutions = 55**2 * 96 * 363 + 27**2 * 256 * 48 * 25 + 13**2 * 9 * (384 * 256 + 384 * 192 + 256 * 192)
    products = 9216 * 4096 + 4096 * 4096 + 4096 * 1000
    assert matrix_flops(graph("alexnet_two_tower")) == 2 * (convolutions + products)


def test_overfeat_by_hand() -> None:
    convolutions = 56**2 * 96 * 363 + 24**2 * 256 * 96 * 25 + 12**2 * 9 * (512 * 256 + 1024 * 512 + 1024 * 1024)
    products = 36864 * 3072 + 3072 * 4096 + 4096 * 1000
    assert matrix_flops(graph("overfeat")) == 2 * (convolutions + products)


def test_network_in_network_by_hand() -> None:
    first = 54**2 * 96 * (3 * 121 + 2 * 96)
    second = 27**2 * 256 * (96 * 25 + 2 * 256)
    third = 13**2 * 384 * (256 * 9 + 2 * 384)
    fourth = 6**2 * 1024 * (384 * 9 + 1024 + 1000)
    assert matrix_flops(graph("nin")) == 2 * (first + second + third + fourth)


def test_unet_by_hand() -> None:
    """Sizes of figure 1 of the paper: what each 3x3 convolution leaves, level by level."""
    down = [(570, 568), (282, 280), (138, 136), (66, 64), (30, 28)]
    up = [(390, 388), (198, 196), (102, 100), (54, 52)]
    macs = 570**2 * 64 * 9 + 568**2 * 64 * 64 * 9
    for level, (first, second) in enumerate(down[1:], start=1):
        c = 64 * 2**level
        macs += 9 * (first**2 * c * c // 2 + second**2 * c * c)
    for level, (first, second) in enumerate(up):
        c = 64 * 2**level
        from_below = (first + 2) // 2
        macs += from_below**2 * 2 * c * c * 4 + 9 * (first**2 * 2 * c * c + second**2 * c * c)
    macs += 388**2 * 64 * 2
    assert matrix_flops(graph("unet")) == 2 * macs
    assert graph("unet").outputs[0].shape == (1, 2, 388, 388)


def test_the_unet_of_fastmri_by_hand() -> None:
    """Pairs of 3x3 at 320 … 20 pixels, 2x2 up-convolutions, 1x1; every level halves pixels and doubles channels."""
    base, pixels = 32, 320 * 320
    pairs = [9 * pixels * base * (1 + base)]
    for level in range(1, 5):
        c = base * 2**level
        pairs.append(9 * pixels // 4**level * c * (c // 2 + c))
    ups = [
        pixels // 4**level * 2 * c * c + 9 * pixels // 4**level * c * 3 * c
        for level, c in enumerate((32, 64, 128, 256))
    ]
    assert sum(pairs) + sum(ups) + pixels * base == 18_802_278_400
    assert matrix_flops(graph("unet_fastmri")) == 2 * 18_802_278_400


@pytest.mark.parametrize(("name", "blocks"), sorted(FACES.items()))
def test_networks_for_faces_by_hand(name: str, blocks: tuple[int, ...]) -> None:
    """Norms have two values a channel, PReLUs one; 512 features of 7x7x512."""
    count, before = 9 * 3 * 64 + 3 * 64, 64
    for channels, blocks_of in zip((64, 128, 256, 512), blocks, strict=True):
        count += before * channels + 2 * channels  # the shortcut, once a stage
        for _ in range(blocks_of):
            count += 2 * before + 9 * before * channels + 3 * channels + 9 * channels * channels + 2 * channels
            before = channels
    assert count + 2 * 512 + 7 * 7 * 512 * 512 + 512 + 2 * 512 == graph(name).parameter_count


def test_r3d_34_is_r3d_18_and_eight_blocks_by_hand() -> None:
    """A block is two 3x3x3 convolutions; c channels on so many frames and pixels."""
    blocks = [(1, 64, 16 * 56**2), (2, 128, 8 * 28**2), (4, 256, 4 * 14**2), (1, 512, 2 * 7**2)]
    more = sum(count * 2 * 27 * c * c * positions for count, c, positions in blocks)
    assert matrix_flops(graph("r3d_34")) - matrix_flops(graph("r3d_18")) == 2 * more
    parameters = sum(count * (2 * 27 * c * c + 4 * c) for count, c, _ in blocks)
    assert graph("r3d_34").parameter_count - graph("r3d_18").parameter_count == parameters


def test_resnet20_by_hand() -> None:
    """19 convolutions, of which two halve the side: they read half the channels and cost half."""
    convolutions = 32**2 * 16 * 27 + (16 + 2 / 2) * 32**2 * 16 * 16 * 9
    assert matrix_flops(graph("resnet20")) == 2 * (convolutions + 640)
    weights = 9 * (3 * 16 + 6 * 16**2 + 16 * 32 + 5 * 32**2 + 32 * 64 + 5 * 64**2)
    norms = 2 * (7 * 16 + 6 * 32 + 6 * 64)
    assert graph("resnet20").parameter_count == weights + norms + 650


@pytest.mark.parametrize("depth", [32, 44, 56, 110])
def test_a_deeper_cifar_resnet_adds_blocks_of_one_cost(depth: int) -> None:
    """Halving the side and doubling the channels keeps a convolution's 32²·16·16·9 multiply-adds."""
    added = depth - 20
    assert matrix_flops(graph(f"resnet{depth}")) - matrix_flops(graph("resnet20")) == 2 * added * 32**2 * 16 * 16 * 9
    parameters = added // 3 * (9 * (16**2 + 32**2 + 64**2) + 2 * (16 + 32 + 64))
    assert graph(f"resnet{depth}").parameter_count - 269_722 == parameters


def test_the_networks_of_the_report_by_hand() -> None:
    mnist = 26**2 * 32 * 9 + 11**2 * 32 * 288
    assert matrix_flops(graph("mnist_cnn")) == 2 * (mnist + 3**2 * 32 * 288 + 32 * 128 + 1280)
    assert matrix_flops(graph("mnist_cnn_2conv")) == 2 * (mnist + 800 * 128 + 1280)
    convolutions = 30**2 * 64 * 27 + 13**2 * 64 * 576 + 4**2 * 32 * 576
    assert matrix_flops(graph("cifar10_cnn")) == 2 * (convolutions + 128 * 512 + 512 * 256 + 256 * 128 + 1280)
    camelyon = [(96, 3, 256), (48, 256, 256), (24, 256, 512), (12, 512, 512), (6, 512, 1024), (3, 1024, 1024)]
    convolutions = sum(side**2 * into * out * 9 for side, into, out in camelyon)
    products = 1024 * 1028 + 1028 * 512 + 512 * 128 + 128
    assert matrix_flops(graph("patch_camelyon_cnn")) == 2 * (convolutions + products)


def test_patch_camelyon_ends_in_a_sigmoid_and_a_binary_loss() -> None:
    built = graph("patch_camelyon_cnn", 7)
    assert (built.loss, built.outputs[0].shape, built.ops[-1].layer) == ("bce", (7, 1), "sigmoid")


@pytest.mark.parametrize(("name", "channels", "macs"), [("naive", 672, 1_115_684_864), ("reduced", 480, 354_418_688)])
def test_inception_modules_on_32x32x256_by_hand(name: str, channels: int, macs: int) -> None:
    module = graph(f"inception_{name}")
    assert module.outputs[0].shape == (1, channels, 32, 32)
    assert matrix_flops(module) == 2 * macs


def test_the_lectures_358_million_count_one_convolution_twice() -> None:
    """CS231n lists six products for the reduced module on 28x28 and totals them at 358 M; they add up to 271 M."""
    macs = matrix_flops(graph("inception_reduced", input_shape=(256, 28, 28))) // 2
    listed = 28 * 28 * (3 * 64 * 256 + 128 * 256 + 192 * 9 * 64 + 96 * 25 * 64)
    assert macs == listed == 271_351_808
    assert round((listed + 28 * 28 * 192 * 9 * 64) / 1e6) == 358


def test_alexnets_two_towers_are_groups() -> None:
    built = graph("alexnet_two_tower")
    groups = {op.layer: op.kind.groups for op in built.ops if isinstance(op.kind, Conv)}
    assert groups == {"conv1": 1, "conv2": 2, "conv3": 1, "conv4": 2, "conv5": 2}
    norms = [op.layer for op in built.ops if isinstance(op.kind, Norm)]
    assert norms == ["norm1", "norm2"]


def test_vgg19_has_the_activations_of_the_papers_table() -> None:
    built = graph("vgg19")
    made = [op.output.elements for op in built.ops if isinstance(op.kind, Conv | Matmul)]
    sides = [(224, 64)] * 2 + [(112, 128)] * 2 + [(56, 256)] * 4 + [(28, 512)] * 4 + [(14, 512)] * 4
    assert made == [side * side * channels for side, channels in sides] + [4096, 4096, 1000]


@pytest.mark.parametrize(("width", "rounded"), [(3, 8), (11, 16), (35.2, 32), (44.8, 48), (100.8, 104), (123.2, 120)])
def test_widths_are_rounded_to_eights_but_not_far_down(width: float, rounded: int) -> None:
    assert divisible(width) == rounded


# Laws.


def test_resnet_200_by_hand() -> None:
    """ResNet-152 and 16 more blocks in its second stage: 512-128-128-512 on 28x28 pixels, three normalisations each."""
    products = 512 * 128 + 9 * 128 * 128 + 128 * 512
    wide, deep = graph("resnet152"), graph("resnet200")
    assert deep.parameter_count - wide.parameter_count == 16 * (products + 2 * (128 + 128 + 512))
    assert matrix_flops(deep) - matrix_flops(wide) == 2 * 16 * 28 * 28 * products


def test_resnet_18_with_a_small_stem_by_hand() -> None:
    """Ten classes for a thousand and a 3x3 stem for the 7x7; the stages see 32, 16, 8 and 4 pixels a side."""
    built = graph("resnet18_cifar")
    stem = 64 * 3 * (9 - 49)
    assert built.parameter_count == graph("resnet18").parameter_count + stem + 513 * 10 - 513 * 1000
    first = 32 * 32 * 64 * (3 * 9 + 4 * 64 * 9)
    later = 16 * 16 * 128 * (64 * 9 + 3 * 128 * 9 + 64)  # each of the three: half the pixels a side, twice the channels
    assert matrix_flops(built) == 2 * (first + 3 * later + 512 * 10)


@given(name=names, batch=st.integers(2, 64))
@settings(max_examples=25, deadline=None)
def test_flops_and_elements_grow_with_the_batch(name: str, batch: int) -> None:
    one, many = graph(name, 1, aux=True), graph(name, batch, aux=True)
    assert many.parameter_count == one.parameter_count
    assert matrix_flops(many) == batch * matrix_flops(one)
    assert sum(op.output.elements for op in many.ops) == batch * sum(op.output.elements for op in one.ops)


@every_network
def test_a_training_step_is_three_forwards_less_the_gradient_of_the_input(name: str) -> None:
    """Each product has a data and a weight gradient of its own size; nobody asks for the gradient of the image."""
    built = graph(name, 4, aux=True)
    step = zoo_model(name).trace(Recipe(batch=4))
    learned = differentiable(built)
    skipped = sum(op.work.flops for op in built.ops if op.weights and op.inputs[0].name not in learned)
    assert step.flops["matrix"] == 3 * matrix_flops(built) - skipped
    assert step.opaque == ()


@every_network
def test_every_parameter_is_used(name: str) -> None:
    built = graph(name, aux=True)
    used = {weight.name for op in built.ops for weight in op.weights}
    assert used == {parameter.name for parameter in built.parameters}


# Inputs.


@pytest.mark.parametrize(
    ("name", "input_shape", "layer"),
    [
        ("vgg16", (3, 31, 31), "features.30 turns 512×1×1 into 512×0×0"),
        ("alexnet", (3, 32, 32), "features.12 turns 256×1×1 into 256×0×0"),
        ("overfeat", (3, 4, 4), "features.0 turns 3×4×4 into 96×-1×-1"),
        ("inception_v3", (3, 74, 74), "AuxLogits.average_pool turns 768×2×2 into 768×0×0"),
        ("densenet121", (3, 28, 28), "features.transition3.pool turns 512×1×1 into 512×0×0"),
        ("unet", (1, 139, 139), "down5.conv2 turns 1024×2×2 into 1024×0×0"),
        ("mnist_cnn", (1, 16, 16), "conv3 turns 32×2×2 into 32×0×0"),
    ],
)
def test_too_small_an_input_names_the_layer_that_runs_out(name: str, input_shape: tuple[int, ...], layer: str) -> None:
    with pytest.raises(BadInput) as caught:
        zoo_model(name, input_shape).graph(2)
    assert str(caught.value) == f"{name}: {layer}: the input is too small for this network"


def test_other_input_sizes_and_channels_build() -> None:
    """Fashion-MNIST on ResNet-50: one channel, 28 pixels; the first convolution is a third as large."""
    built = graph("resnet50", 8, (1, 28, 28))
    assert built.parameter_count == 25_557_032 - 2 * 64 * 7 * 7
    assert built.outputs[0].shape == (8, 1000)


@pytest.mark.parametrize(("given_shape", "shown"), [((224, 224), "224x224"), ((3, 0, 224), "3x0x224")])
def test_an_input_that_is_no_image_is_refused(given_shape: tuple[int, ...], shown: str) -> None:
    with pytest.raises(BadInput) as caught:
        graph("efficientnet_b1", 1, given_shape)
    message = f"efficientnet_b1 takes an input of 3 positive sizes, such as 3x240x240; got {shown}"
    assert str(caught.value) == message


def test_a_network_without_auxiliary_heads_has_none_to_drop() -> None:
    with pytest.raises(BadInput, match="vgg16 has no auxiliary heads to drop"):
        zoo_model("vgg16", aux=False)


def test_an_unknown_network_offers_near_names() -> None:
    with pytest.raises(UnknownName, match=r"no model called 'vgg17'; near: .*vgg1"):
        zoo_model("vgg17")


# Against torchvision.


@pytest.fixture(scope="module")
def torchvision_models() -> Any:
    """`torchvision.models`, also where its compiled operators do not load (beside a CPU torch): none is needed."""
    torch = pytest.importorskip("torch")
    try:
        return pytest.importorskip("torchvision.models")
    except RuntimeError:
        for module in [m for m in sys.modules if m.partition(".")[0] == "torchvision"]:
            del sys.modules[module]
        library = torch.library.Library("torchvision", "FRAGMENT")
        for operator in ("nms", "qnms"):
            library.define(f"{operator}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
        return pytest.importorskip("torchvision.models")


def torch_model(models: Any, name: str) -> Any:
    """The network on `meta`, auxiliary heads included, in training mode."""
    torch = pytest.importorskip("torch")
    with torch.device("meta"):
        match name:
            case "r3d_18":
                return models.video.r3d_18()
            case "r3d_34":
                video = models.video.resnet
                return video.VideoResNet(video.BasicBlock, [video.Conv3DSimple] * 4, [3, 4, 6, 3], video.BasicStem)
            case "googlenet" | "inception_v3":
                return models.get_model(name, weights=None, aux_logits=True, init_weights=False)
            case _:
                return models.get_model(TORCHVISION_NAMES.get(name, name), weights=None)


@every("name", [*FROM_TORCHVISION, "r3d_34"])
def test_parameters_have_torchvisions_names_and_shapes(name: str, torchvision_models: Any) -> None:
    theirs = {n: tuple(p.shape) for n, p in torch_model(torchvision_models, name).named_parameters()}
    assert {p.name: p.tensor.shape for p in graph(name, aux=True).parameters} == theirs


def published_weights(models: Any, name: str) -> Any:
    if name == "r3d_18":
        return models.video.R3D_18_Weights.DEFAULT
    return models.get_model_weights(TORCHVISION_NAMES.get(name, name)).DEFAULT


@every("name", FROM_TORCHVISION)
def test_the_published_figures_and_input_sizes_are_torchvisions(name: str, torchvision_models: Any) -> None:
    weights = published_weights(torchvision_models, name)
    heads = 3_326_696 if name == "inception_v3" else 0
    assert PUBLISHED[name].parameters == weights.meta["num_params"] - heads
    assert PUBLISHED[name].gmacs == weights.meta["_ops"]
    crop = weights.transforms().crop_size
    assert graph(name).inputs[0].shape[-1] == crop[-1]


@every("name", [name for name in FROM_TORCHVISION if name != "r3d_18"])
def test_the_smallest_image_is_torchvisions(name: str, torchvision_models: Any) -> None:
    height, width = published_weights(torchvision_models, name).meta["min_size"]
    graph(name, 1, (3, height, width))
    if height > 1:
        with pytest.raises(BadInput, match="the input is too small"):
            graph(name, 1, (3, height - 1, width - 1))


# What torch calls the ops that are counted. Dropout and stochastic depth are the ops that draw random numbers.
ATEN = {
    "convolution": "conv",
    "addmm": "matmul",
    "native_batch_norm": "norm",
    "max_pool2d_with_indices": "max",
    "avg_pool2d": "average",
    "_adaptive_avg_pool2d": "average",
    "mean": "average",
    "relu": "relu",
    "relu_": "relu",
    "hardtanh_": "relu6",
    "silu_": "silu",
    "hardswish_": "hardswish",
    "hardsigmoid": "hardsigmoid",
    "sigmoid": "sigmoid",
    "cat": "concatenate",
    "clone": "clone",
    "bernoulli_": "random",
}


def ours(kind: Kind) -> str:
    match kind:
        case Pool(style=style):
            return style
        case Elementwise(function="dropout" | "stochastic_depth"):
            return "random"
        case Elementwise(function=function) | Copy(function=function):
            return function
        case _:
            return kind.label


@every(
    "name",
    [
        "alexnet",
        "densenet121",
        "efficientnet_b1",
        "googlenet",
        "inception_v3",
        "mobilenet_v2",
        "mobilenet_v3_large",
        "r3d_18",
        "resnet18",
        "squeezenet1_1",
        "vgg16_bn",
    ],
)
def test_the_forward_pass_runs_the_ops_that_torch_runs(name: str, torchvision_models: Any) -> None:
    torch = pytest.importorskip("torch")
    dispatch = pytest.importorskip("torch.utils._python_dispatch")
    called: Counter[str] = Counter()

    class Count(dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            called[ATEN.get(function.overloadpacket.__name__, "")] += 1
            return function(*args, **(kwargs or {}))

    built, model = graph(name, 2, aux=True), torch_model(torchvision_models, name).train()
    with Count():
        model(torch.empty(built.inputs[0].shape, device="meta"))
    counted = set(ATEN.values())
    assert Counter(ours(op.kind) for op in built.ops if ours(op.kind) in counted) == +Counter(
        {op: count for op, count in called.items() if op}
    )
