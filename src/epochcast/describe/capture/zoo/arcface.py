"""Face recognition: residual networks for faces, trained to tell identities apart (Deng et al. 2019, "ArcFace").

The network is the paper's IResNet ("improved" residual blocks: norm, 3x3, norm, PReLU, 3x3, norm) over pictures of
112x112: a stem without pooling, four stages that all halve the picture, a product to 512 features, and their norm,
whose scale is not trained. Depths count two convolutions a block and the two layers around them.

The head compares features with one vector per identity: cosines, a margin, a softmax. With millions of identities its
vectors are split over the GPUs (`ranks`): each scores the features of all against its share. Partial FC (An et al.
2022) scores a `sampled` fraction of them. Features that ranks gather are a copy here; and the gradients of a rank's
own vectors, which no one exchanges, are counted with the others.

    arcface:iresnet50,classes=618000,ranks=8,sampled=0.1
"""

from math import ceil

from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.zoo.convnets import FACES
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.op_kinds import Elementwise
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput, UnknownName

FEATURES = 512
PUBLISHED = (3, 112, 112)
LAYOUT = "arcface:NETWORK,classes=COUNT, with ranks=GPUS and sampled=FRACTION where the head is split or sampled"


def face_network(
    batch: int,
    input_shape: tuple[int, ...] = PUBLISHED,
    *,
    name: str,
    blocks: tuple[int, ...],
    classes: int = 0,
    ranks: int = 1,
    sampled: float = 1.0,
) -> Graph:
    """The features of faces; with `classes`, their scores against a rank's share of the identities."""
    b = Builder(name, batch)
    x = b.conv(b.input("image", input_shape), 64, 3, padding=1, bias=False, name="conv1")
    x = _prelu(b, b.batch_norm(x, name="bn1"), "prelu")
    for number, count in enumerate(blocks, 1):
        for index in range(count):
            with b.scope(f"layer{number}.{index}"):
                x = _block(b, x, 64 * 2 ** (number - 1), 1 if index else 2)
    x = b.flatten(b.batch_norm(x, name="bn2"))
    x = b.batch_norm(b.linear(x, FEATURES, name="fc"), name="features")
    if not classes:
        return b.finish(x, loss="none").frozen(["features.weight"])
    return b.finish(_cosines(b, x, classes, ranks, sampled)).frozen(["features.weight"])


def _block(b: Builder, x: Tensor, channels: int, stride: int) -> Tensor:
    y = b.conv(b.batch_norm(x, name="bn1"), channels, 3, padding=1, bias=False, name="conv1")
    y = _prelu(b, b.batch_norm(y, name="bn2"), "prelu")
    y = b.batch_norm(b.conv(y, channels, 3, stride=stride, padding=1, bias=False, name="conv2"), name="bn3")
    if stride > 1:
        x = b.batch_norm(b.conv(x, channels, 1, stride=stride, bias=False, name="downsample.0"), name="downsample.1")
    return b.add(y, x, name="add")


def _prelu(b: Builder, x: Tensor, name: str) -> Tensor:
    """One slope per channel."""
    with b.scope(name):
        slope = b.parameter("weight", (x.shape[1],))
    return b.op(Elementwise("prelu"), [x], [x.shape], weights=[slope], name=name)[0]


def _cosines(b: Builder, x: Tensor, classes: int, ranks: int, sampled: float) -> Tensor:
    """Of the features of all ranks with the vectors of one: both divided by their lengths, products, margin, scale."""
    share = ceil(classes / ranks * sampled)
    with b.scope("head"):
        if ranks > 1:
            x = b.copy("repeat", x, (ranks * x.shape[0], FEATURES), name="gathered")
        vectors = b.parameter("weight", (share, FEATURES))
        lengths = b.op(Elementwise("normalize"), [], [vectors.shape], weights=[vectors], name="normalised")[0]
        scores = b.matmul(b.elementwise("normalize", x), lengths, transpose_b=True, name="cosines")
        scores = b.elementwise("clamp", scores, name="clamp")
        return b.elementwise("scale", b.elementwise("margin", scores, name="margin"), name="scale")


def named_face_network(text: str, input_shape: tuple[int, ...] | None = None) -> BuiltModel:
    """The network of a reference: its name, then options."""
    name, *options = (part.strip() for part in text.split(","))
    if name not in FACES:
        raise UnknownName("face recognition network", name, FACES)
    given = dict(option.partition("=")[::2] for option in options)
    if unknown := sorted(set(given) - {"classes", "ranks", "sampled"}):
        raise BadInput(f"arcface:{text}: unknown option {unknown[0]!r}; write {LAYOUT}")
    try:
        classes, ranks = int(given.get("classes", 0)), int(given.get("ranks", 1))
        sampled = float(given.get("sampled", 1))
    except ValueError:
        raise BadInput(f"arcface:{text}: options are numbers; write {LAYOUT}") from None
    if classes < 0 or ranks < 1 or not 0 < sampled <= 1:
        raise BadInput(f"arcface:{text}: ranks are at least 1 and sampled is above 0 and at most 1")
    shape = PUBLISHED if input_shape is None else input_shape
    label, blocks = f"arcface:{text}", FACES[name]

    def build(batch: int) -> Graph:
        return face_network(batch, shape, name=label, blocks=blocks, classes=classes, ranks=ranks, sampled=sampled)

    return BuiltModel(label, build)
