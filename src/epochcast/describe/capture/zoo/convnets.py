"""The convolutional networks of the zoo, by name. Their modules say what they are and how their parameters add up."""

from collections.abc import Mapping

from epochcast.describe.capture.zoo.entry import ZooEntry


def _resnet(title: str, blocks: tuple[int, ...], bottleneck: bool, **more: object) -> ZooEntry:
    return ZooEntry("resnet", "resnet", title, {"blocks": blocks, "bottleneck": bottleneck, **more})


def _cifar(depth: int) -> ZooEntry:
    return ZooEntry("resnet", "cifar_resnet", f"CIFAR ResNet-{depth}, He et al. 2016", {"depth": depth})


def _vgg(depth: int, batch_norm: bool) -> ZooEntry:
    title = f"VGG-{depth}{' with batch normalisation' if batch_norm else ''}, Simonyan & Zisserman 2015"
    return ZooEntry("vgg", "vgg", title, {"depth": depth, "batch_norm": batch_norm})


def _densenet(depth: int, blocks: tuple[int, ...], **more: object) -> ZooEntry:
    return ZooEntry("densenet", "densenet", f"DenseNet-{depth}, Huang et al. 2017", {"blocks": blocks, **more})


def _efficientnet(label: str, width: float, depth: float, size: int) -> ZooEntry:
    options = {"width": width, "depth": depth, "input_shape": (3, size, size)}
    return ZooEntry("efficientnet", "efficientnet", f"EfficientNet-{label}, Tan & Le 2019", options)


def _squeezenet(version: str) -> ZooEntry:
    return ZooEntry("squeezenet", "squeezenet", f"SqueezeNet {version}, Iandola et al. 2016", {"version": version})


def _mobilenet_v3(size: str) -> ZooEntry:
    return ZooEntry("mobilenet", "mobilenet_v3", f"MobileNetV3 {size}, Howard et al. 2019", {"size": size})


def _r3d(depth: int, blocks: tuple[int, ...]) -> ZooEntry:
    return ZooEntry("video", "r3d", f"R3D-{depth} over video, Tran et al. 2018", {"blocks": blocks})


def _mnist(convolutions: int) -> ZooEntry:
    title = f"the source report's MNIST network, {convolutions} convolutions"
    return ZooEntry("report_networks", "mnist_cnn", title, {"convolutions": convolutions})


def _face(name: str, blocks: tuple[int, ...]) -> ZooEntry:
    title = f"IResNet-{name.removeprefix('iresnet')} for faces, Deng et al. 2019, without its classes"
    return ZooEntry("arcface", "face_network", title, {"blocks": blocks})


def _diffusion(title: str, **sizes: object) -> ZooEntry:
    title = f"the U-Net of {title}"
    return ZooEntry("diffusion", "diffusion_unet", title, sizes, host_class="diffusion_trainer")


FACES: Mapping[str, tuple[int, ...]] = {
    "iresnet18": (2, 2, 2, 2),
    "iresnet34": (3, 4, 6, 3),
    "iresnet50": (3, 4, 14, 3),
    "iresnet100": (3, 13, 30, 3),
}
"""Blocks of the four stages of networks for faces."""

CONVNETS: Mapping[str, ZooEntry] = {
    "alexnet": ZooEntry("alexnet", "alexnet", "AlexNet, one tower, Krizhevsky 2014"),
    "alexnet_two_tower": ZooEntry("alexnet", "alexnet_two_tower", "AlexNet of the paper, Krizhevsky et al. 2012"),
    "nin": ZooEntry("alexnet", "nin", "Network in network for ImageNet, Lin et al. 2014"),
    "overfeat": ZooEntry("alexnet", "overfeat", "OverFeat, fast model, Sermanet et al. 2014"),
    **{f"vgg{depth}": _vgg(depth, batch_norm=False) for depth in (11, 13, 16, 19)},
    **{f"vgg{depth}_bn": _vgg(depth, batch_norm=True) for depth in (11, 13, 16, 19)},
    "googlenet": ZooEntry("inception", "googlenet", "GoogLeNet, Szegedy et al. 2015", has_aux=True),
    "inception_v3": ZooEntry("inception", "inception_v3", "Inception v3, Szegedy et al. 2016", has_aux=True),
    "inception_naive": ZooEntry("inception", "inception_naive", "one inception module, naive"),
    "inception_reduced": ZooEntry("inception", "inception_reduced", "one inception module with dimension reduction"),
    "resnet18": _resnet("ResNet-18, He et al. 2016", (2, 2, 2, 2), False),
    "resnet34": _resnet("ResNet-34, He et al. 2016", (3, 4, 6, 3), False),
    "resnet50": _resnet("ResNet-50, He et al. 2016", (3, 4, 6, 3), True),
    "resnet101": _resnet("ResNet-101, He et al. 2016", (3, 4, 23, 3), True),
    "resnet152": _resnet("ResNet-152, He et al. 2016", (3, 8, 36, 3), True),
    "resnet200": _resnet("ResNet-200, He et al. 2016", (3, 24, 36, 3), True),
    "resnet18_cifar": _resnet(
        "ResNet-18 with a small stem for CIFAR",
        (2, 2, 2, 2),
        False,
        classes=10,
        small_stem=True,
        input_shape=(3, 32, 32),
    ),
    "resnext50_32x4d": _resnet("ResNeXt-50 32x4d, Xie et al. 2017", (3, 4, 6, 3), True, groups=32, width_per_group=4),
    "wide_resnet50_2": _resnet("Wide ResNet-50-2", (3, 4, 6, 3), True, width_per_group=128),
    **{f"resnet{depth}": _cifar(depth) for depth in (20, 32, 44, 56, 110)},
    "densenet121": _densenet(121, (6, 12, 24, 16)),
    "densenet161": _densenet(161, (6, 12, 36, 24), growth=48, stem=96),
    "densenet169": _densenet(169, (6, 12, 32, 32)),
    "densenet201": _densenet(201, (6, 12, 48, 32)),
    "mobilenet_v2": ZooEntry("mobilenet", "mobilenet_v2", "MobileNetV2, Sandler et al. 2018"),
    "mobilenet_v3_large": _mobilenet_v3("large"),
    "mobilenet_v3_small": _mobilenet_v3("small"),
    "efficientnet_b0": _efficientnet("B0", 1.0, 1.0, 224),
    "efficientnet_b1": _efficientnet("B1", 1.0, 1.1, 240),
    "efficientnet_b2": _efficientnet("B2", 1.1, 1.2, 288),
    "efficientnet_b3": _efficientnet("B3", 1.2, 1.4, 300),
    "efficientnet_b4": _efficientnet("B4", 1.4, 1.8, 380),
    "squeezenet": _squeezenet("1.0"),
    "squeezenet1_0": _squeezenet("1.0"),
    "squeezenet1_1": _squeezenet("1.1"),
    "unet": ZooEntry("unet", "unet", "U-Net, Ronneberger et al. 2015"),
    "unet_fastmri": ZooEntry("unet", "fastmri_unet", "U-Net of fastMRI, Zbontar et al. 2018"),
    **{name: _face(name, blocks) for name, blocks in FACES.items()},
    "sd15_unet": _diffusion("Stable Diffusion 1.5, Rombach et al. 2022"),
    "sd21_unet": _diffusion(
        "Stable Diffusion 2.1, Rombach et al. 2022", text_width=1024, head_width=64, input_shape=(4, 96, 96)
    ),
    "sdxl_unet": _diffusion(
        "Stable Diffusion XL, Podell et al. 2024",
        widths=(320, 640, 1280),
        depths=(0, 2, 10),
        text_width=2048,
        head_width=64,
        added_width=2816,
        input_shape=(4, 128, 128),
    ),
    "r3d_18": _r3d(18, (2, 2, 2, 2)),
    "r3d_34": _r3d(34, (3, 4, 6, 3)),
    "mnist_cnn": _mnist(3),
    "mnist_cnn_2conv": _mnist(2),
    "cifar10_cnn": ZooEntry("report_networks", "cifar10_cnn", "the source report's CIFAR-10 network"),
    "patch_camelyon_cnn": ZooEntry(
        "report_networks", "patch_camelyon_cnn", "the source report's Patch Camelyon network"
    ),
}
