import pytest

from epochcast.errors import BadInput
from epochcast.measure.bench.memory_probe import probe_memory

torch = pytest.importorskip("torch")


def test_the_line_through_two_steps_meets_a_third() -> None:
    def network() -> object:
        return torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8))

    small = probe_memory(network(), (64,), batches=(256, 512)).coefficients
    large = probe_memory(network(), (64,), batches=(512, 1024)).coefficients
    assert small.bytes_at(1024) == pytest.approx(large.memory_bytes[1], rel=0.02)
    assert (small.input_bytes, small.output_bytes) == (4 * 64, 4 * 8)
    assert small.fixed_bytes >= 4 * (64 * 512 + 512 + 512 * 8 + 8)


def test_a_zoo_name_means_the_module_of_that_name() -> None:
    found = probe_memory("mnist_cnn", batches=(32, 64)).coefficients
    assert (found.input_bytes, found.output_bytes) == (4 * 28 * 28, 4 * 10)


def test_a_name_without_a_module_has_no_real_step() -> None:
    with pytest.raises(BadInput, match="a probe runs real steps of a torch module: no network to train called 'nin'"):
        probe_memory("nin")


def test_what_the_module_raises_is_one_line() -> None:
    with pytest.raises(BadInput, match="the probed step fails: RuntimeError: mat1 and mat2"):
        probe_memory(torch.nn.Linear(3, 3), (4,), batches=(2, 4))


def test_an_output_of_any_shape_is_trained() -> None:
    class Volumes(torch.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Conv3d(1, 2, 1)

        def forward(self, x: object) -> dict[str, object]:
            return {"volumes": self.layer(x)}

    found = probe_memory(Volumes(), (1, 4, 8, 8), batches=(64, 128)).coefficients
    assert found.output_bytes == 2 * found.input_bytes
