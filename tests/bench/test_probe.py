import pytest

from epochcast.bench.probe import probe_memory
from epochcast.errors import BadInput

torch = pytest.importorskip("torch")


def test_the_line_through_two_steps_meets_a_third() -> None:
    def network() -> object:
        return torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8))

    small = probe_memory(network(), (64,), batches=(256, 512)).coefficients
    large = probe_memory(network(), (64,), batches=(512, 1024)).coefficients
    assert small.bytes_at(1024) == pytest.approx(large.memory_bytes[1], rel=0.02)
    assert (small.input_bytes, small.output_bytes) == (4 * 64, 4 * 8)
    assert small.fixed_bytes >= 4 * (64 * 512 + 512 + 512 * 8 + 8)


def test_a_name_without_code_has_no_real_step() -> None:
    with pytest.raises(BadInput, match="a probe runs real steps of a torch module: 'resnet50' is none"):
        probe_memory("resnet50")


def test_what_the_module_raises_is_one_line() -> None:
    with pytest.raises(BadInput, match="the probed step fails: RuntimeError: mat1 and mat2"):
        probe_memory(torch.nn.Linear(3, 3), (4,), batches=(2, 4))
