"""AlexNet and the networks built like it: a few large convolutions, then (but for NiN) large products.

Krizhevsky, Sutskever & Hinton 2012 describe a network split over two GPUs; torchvision's is the single tower of
Krizhevsky 2014 ("One weird trick"). Parameters by layer, weights + biases:

| layer | two towers (96-256-384-384-256) | one tower (64-192-384-256-256) |
|---|---|---|
| conv1 | 96·3·11² + 96 = 34,944 | 64·3·11² + 64 = 23,296 |
| conv2 | 256·48·5² + 256 = 307,456 | 192·64·5² + 192 = 307,392 |
| conv3 | 384·256·3² + 384 = 885,120 | 384·192·3² + 384 = 663,936 |
| conv4 | 384·192·3² + 384 = 663,936 | 256·384·3² + 256 = 884,992 |
| conv5 | 256·192·3² + 256 = 442,624 | 256·256·3² + 256 = 590,080 |
| fc6 | 9,216·4,096 + 4,096 = 37,752,832 | the same |
| fc7 | 4,096² + 4,096 = 16,781,312 | the same |
| fc8 | 4,096·1,000 + 1,000 = 4,097,000 | the same |
| sum | 60,965,224 | 61,100,840 |

The paper's convolutions 2, 4 and 5 see only the half of the channels that lives on their GPU: two groups.
"""

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor


def alexnet(batch: int, input_shape: tuple[int, ...] = (3, 224, 224), *, name: str, classes: int = 1000) -> Graph:
    """torchvision's single tower: no response normalisation, an adaptive pool in front of the classifier."""
    b = Builder(name, batch)
    x = b.input("image", input_shape)
    with b.scope("features"):
        x = b.relu(b.conv(x, 64, 11, stride=4, padding=2, name="0"), name="1")
        x = b.max_pool(x, 3, 2, name="2")
        x = b.relu(b.conv(x, 192, 5, padding=2, name="3"), name="4")
        x = b.max_pool(x, 3, 2, name="5")
        x = b.relu(b.conv(x, 384, 3, padding=1, name="6"), name="7")
        x = b.relu(b.conv(x, 256, 3, padding=1, name="8"), name="9")
        x = b.relu(b.conv(x, 256, 3, padding=1, name="10"), name="11")
        x = b.max_pool(x, 3, 2, name="12")
    x = b.flatten(b.adaptive_average_pool(x, 6, name="avgpool"))
    with b.scope("classifier"):
        x = b.relu(b.linear(b.dropout(x, name="0"), 4096, name="1"), name="2")
        x = b.relu(b.linear(b.dropout(x, name="3"), 4096, name="4"), name="5")
        return b.finish(b.linear(x, classes, name="6"))


def alexnet_two_tower(
    batch: int, input_shape: tuple[int, ...] = (3, 224, 224), *, name: str, classes: int = 1000
) -> Graph:
    """The paper's network as one graph: its two GPUs are two groups.

    The paper says 224 pixels and 55 positions, which needs a border: two pixels here (Caffe takes 227 and none).
    """
    b = Builder(name, batch)
    x = b.input("image", input_shape)
    x = b.relu(b.conv(x, 96, 11, stride=4, padding=2, name="conv1"), name="relu1")
    x = b.max_pool(_response_norm(b, x, "norm1"), 3, 2, name="pool1")
    x = b.relu(b.conv(x, 256, 5, padding=2, groups=2, name="conv2"), name="relu2")
    x = b.max_pool(_response_norm(b, x, "norm2"), 3, 2, name="pool2")
    x = b.relu(b.conv(x, 384, 3, padding=1, name="conv3"), name="relu3")
    x = b.relu(b.conv(x, 384, 3, padding=1, groups=2, name="conv4"), name="relu4")
    x = b.relu(b.conv(x, 256, 3, padding=1, groups=2, name="conv5"), name="relu5")
    x = b.flatten(b.max_pool(x, 3, 2, name="pool5"))
    x = b.dropout(b.relu(b.linear(x, 4096, name="fc6"), name="relu6"), name="drop6")
    x = b.dropout(b.relu(b.linear(x, 4096, name="fc7"), name="relu7"), name="drop7")
    return b.finish(b.linear(x, classes, name="fc8"))


def _response_norm(b: Builder, x: Tensor, name: str) -> Tensor:
    """Local response normalisation over five neighbouring channels (section 3.3): nothing learned."""
    return b.norm(x, "local_response", x.shape[1], affine=False, name=name)


def nin(batch: int, input_shape: tuple[int, ...] = (3, 224, 224), *, name: str, classes: int = 1000) -> Graph:
    """Network in network (Lin, Chen & Yan 2014), the authors' ImageNet model for Caffe.

    Four stages of a convolution and two 1x1 convolutions ("cccp"), the classes averaged over positions. Parameters:
    (34,944 + 2·9,312) + (614,656 + 2·65,792) + (885,120 + 2·147,840) + (3,539,968 + 1,049,600 + 1,025,000) = 7,595,176,
    29.0 MiB: the authors say their snapshot has 29 MB. Caffe's pools keep a last partial window.
    """
    b = Builder(name, batch)
    x = b.input("image", input_shape)
    x = _mlpconv(b, x, "conv1", 96, 11, 4, 0, {"cccp1": 96, "cccp2": 96})
    x = b.max_pool(x, 3, 2, ceil_mode=True, name="pool1")
    x = _mlpconv(b, x, "conv2", 256, 5, 1, 2, {"cccp3": 256, "cccp4": 256})
    x = b.max_pool(x, 3, 2, ceil_mode=True, name="pool2")
    x = _mlpconv(b, x, "conv3", 384, 3, 1, 1, {"cccp5": 384, "cccp6": 384})
    x = b.dropout(b.max_pool(x, 3, 2, ceil_mode=True, name="pool3"), name="drop")
    x = _mlpconv(b, x, "conv4", 1024, 3, 1, 1, {"cccp7": 1024, "cccp8": classes})
    return b.finish(b.flatten(b.adaptive_average_pool(x, name="pool4")))


def _mlpconv(
    b: Builder, x: Tensor, name: str, channels: int, kernel: int, stride: int, padding: int, inner: dict[str, int]
) -> Tensor:
    """A convolution and, at every position, a small perceptron: 1x1 convolutions by name and width."""
    x = b.conv(x, channels, kernel, stride=stride, padding=padding, name=name)
    x = b.relu(x, name=f"relu_{name}")
    for layer, width in inner.items():
        x = b.relu(b.conv(x, width, 1, name=layer), name=f"relu_{layer}")
    return x


def overfeat(batch: int, input_shape: tuple[int, ...] = (3, 231, 231), *, name: str, classes: int = 1000) -> Graph:
    """OverFeat's fast model (Sermanet et al. 2014, table 1), as the convnet-benchmarks of 2014 to 2016 ran it.

    Parameters: 34,944 + 614,656 + 1,180,160 + 4,719,616 + 9,438,208 in convolutions, 113,249,280 (36,864 → 3,072)
    + 12,587,008 + 4,097,000 in products = 145,920,872.
    """
    b = Builder(name, batch)
    x = b.input("image", input_shape)
    with b.scope("features"):
        x = b.relu(b.conv(x, 96, 11, stride=4, name="0"), name="1")
        x = b.max_pool(x, 2, 2, name="2")
        x = b.relu(b.conv(x, 256, 5, name="3"), name="4")
        x = b.max_pool(x, 2, 2, name="5")
        x = b.relu(b.conv(x, 512, 3, padding=1, name="6"), name="7")
        x = b.relu(b.conv(x, 1024, 3, padding=1, name="8"), name="9")
        x = b.relu(b.conv(x, 1024, 3, padding=1, name="10"), name="11")
        x = b.max_pool(x, 2, 2, name="12")
    x = b.flatten(x)
    with b.scope("classifier"):
        x = b.relu(b.linear(b.dropout(x, name="0"), 3072, name="1"), name="2")
        x = b.relu(b.linear(b.dropout(x, name="3"), 4096, name="4"), name="5")
        return b.finish(b.linear(x, classes, name="6"))
