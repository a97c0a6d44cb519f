import pytest
import torch
from tests.every import every

from epochcast.describe.capture.resolve import find_model
from epochcast.errors import UnknownName
from epochcast.measure.bench.bench_networks import NETWORKS, find_network, module_and_inputs

SMALL = ["mnist_cnn", "cifar10_cnn", "patch_camelyon_prefix", "vit_tiny", "bert_mini", "gpt2_mini", "lstm_wikitext2"]
FROM_TORCHVISION = ["resnet18", "resnet50", "densenet121", "mobilenet_v2"]


@every("name", [*SMALL, *FROM_TORCHVISION, "mnist_cnn_2conv", "patch_camelyon_cnn", "r3d_small"])
def test_what_is_trained_is_what_is_forecast(name: str) -> None:
    network = find_network(name)
    module, example = network.make()
    forecast = find_model(network.reference, network.input_shape).graph(2)
    assert sum(p.numel() for p in module.parameters()) == forecast.parameter_count
    fed = [tuple(t.shape) for t in (*example.args, *example.kwargs.values())]
    assert fed[0][1:] == forecast.inputs[0].shape[1:]


@pytest.mark.parametrize("name", ["mnist_cnn", "lstm_wikitext2", "bert_mini"])
def test_made_up_inputs_are_accepted(name: str) -> None:
    module, fed = module_and_inputs(find_network(name), 2, "cpu")
    with torch.no_grad():
        module(*fed.args, **fed.kwargs)


def test_an_unknown_network_is_refused_with_near_names() -> None:
    with pytest.raises(UnknownName, match=r"no network to train called 'resnet51'; near: .*resnet50"):
        find_network("resnet51")


def test_every_name_is_one_the_command_line_can_write() -> None:
    assert all(name.replace("_", "").isalnum() for name in NETWORKS)
