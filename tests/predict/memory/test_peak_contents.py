from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.hardware.catalogue import find_device
from epochcast.predict.memory.peak import peak_memory
from epochcast.predict.memory.peak_contents import OTHERS, AliveBytes, grouped


def test_what_is_alive_at_the_peak_sums_to_the_breakdown() -> None:
    found = peak_memory(zoo_model("resnet18").trace(Recipe(32, optimizer="adam")), find_device("V100"))
    by_content: dict[str, int] = {}
    for one in found.alive:
        by_content[one.content] = by_content.get(one.content, 0) + one.bytes
    expected = {name: size for name, size in found.breakdown.items() if name not in ("context", "fragmentation")}
    assert by_content == expected


def test_parameters_are_of_their_layer() -> None:
    found = peak_memory(zoo_model("resnet18").trace(Recipe(1)))
    assert AliveBytes("fc", "parameters", 4 * (512 * 1000 + 1000)) in found.alive


def test_layers_are_joined_until_there_is_room() -> None:
    alive = tuple(
        AliveBytes(f"blocks.{block}.{part}", "activations", 10) for block in range(3) for part in ("attn", "mlp")
    )
    assert grouped(alive, 6) == alive
    assert [(one.layer, one.bytes) for one in grouped(alive, 3)] == [(f"blocks.{block}", 20) for block in range(3)]
    assert grouped(alive, 2) == (AliveBytes("blocks", "activations", 60),)


def test_small_layers_are_others() -> None:
    alive = tuple(AliveBytes(f"layer{place}", "activations", 10 * place) for place in range(1, 5))
    assert [(one.layer, one.bytes) for one in grouped(alive, 2)] == [("layer3", 30), ("layer4", 40), (OTHERS, 30)]
