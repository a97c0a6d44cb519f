"""What NCCL holds, beside sizes that its log and its users report."""

from dataclasses import replace

import pytest

import epochcast as ec
from epochcast.hardware.catalogue import find_device, find_link
from epochcast.hardware.cluster import Group
from epochcast.predict.memory.communication_buffers import (
    ALL_TO_ALL,
    CONNECTION_BYTES,
    LIBRARY_BYTES,
    MESH_CHANNELS,
    NEIGHBOURS,
    Communicator,
    communication_bytes,
)

MIB = 2**20
H100, V100, CPU = find_device("H100-SXM5-80GB"), find_device("V100-SXM2-16GB"), find_device("cpu")
NVLINK = replace(find_link("ethernet-100g"), medium="nvlink")
NETWORK = replace(NVLINK, medium="tcp")


def box(ranks: int, nodes: int = 1, *, medium: str = "nvlink") -> Group:
    return Group(nodes, ranks, replace(NVLINK, medium=medium), NETWORK)


def test_a_connection_is_the_two_allocations_of_the_log() -> None:
    """github.com/NVIDIA/nccl/issues/1685"""
    assert CONNECTION_BYTES == 10_485_760 + 2_097_152


def test_a_second_neighbour_takes_as_much_again() -> None:
    """github.com/NVIDIA/nccl/issues/964: 544 MB for two ranks, 688 MB for three and four, by 12 channels."""
    needs = [communication_bytes([Communicator(box(ranks))], V100) for ranks in (2, 3, 4)]
    assert needs == [544 * MIB, 688 * MIB, 688 * MIB]
    assert MESH_CHANNELS == 12


def test_an_all_to_all_joins_every_pair_of_a_box() -> None:
    """github.com/NVIDIA/nccl/issues/1685: 3.28 GB more after the first one, kernels and all."""
    added_bytes = communication_bytes([Communicator(box(8), ALL_TO_ALL)], H100)
    assert added_bytes - LIBRARY_BYTES == 7 * 32 * CONNECTION_BYTES
    assert added_bytes == pytest.approx(3.28e9, rel=0.03)


def test_a_rank_alone_holds_nothing() -> None:
    assert communication_bytes([Communicator(box(1))], H100) == 0
    assert communication_bytes([], H100) == 0


def test_a_cpu_holds_nothing() -> None:
    assert communication_bytes([Communicator(box(8))], CPU) == 0


def test_slow_wires_have_few_channels() -> None:
    by_pcie, by_nvlink = (Communicator(box(4, medium=each)).size_bytes(H100) for each in ("pcie", "nvlink"))
    assert by_pcie < by_nvlink / 10


def test_beyond_two_boxes_nothing_grows() -> None:
    """Beyond two nodes it should no longer increase (github.com/NVIDIA/nccl/issues/986)."""
    two, many = (Communicator(box(8, nodes)).size_bytes(H100) for nodes in (2, 64))
    assert two == many


def test_messages_between_boxes_share_a_buffer() -> None:
    two, many = (Communicator(box(1, nodes), NEIGHBOURS).size_bytes(H100) for nodes in (2, 8))
    assert two == many == CONNECTION_BYTES


def test_the_peak_is_what_is_reserved_and_what_is_beside_tensors() -> None:
    for options in (
        {"gpus": 4, "strategy": "ddp"},
        {"gpus": 4, "strategy": "fsdp"},
        {"gpus": 4, "strategy": "dp2,tp2"},
    ):
        answer = ec.forecast("gpt2", device=H100.name, batch=2, optimizer="adamw", input_shape=(64,), **options)  # type: ignore[arg-type]
        parts = answer.peak_breakdown
        assert answer.peak_bytes is not None and answer.reserved_bytes is not None
        assert parts["communication"] > LIBRARY_BYTES
        assert sum(parts.values()) == answer.peak_bytes.mid
        assert parts["communication"] + parts["context"] + answer.reserved_bytes == answer.peak_bytes.mid


def test_one_gpu_has_no_communicators() -> None:
    assert "communication" not in ec.forecast("gpt2", device=H100.name, batch=2, input_shape=(64,)).peak_breakdown


def test_a_split_model_has_more_communicators_than_its_copies() -> None:
    copies, split = (
        ec.forecast(
            "gpt2", device=H100.name, gpus=16, nodes=2, strategy=strategy, batch=2, optimizer="adamw", input_shape=(64,)
        ).peak_breakdown["communication"]
        for strategy in ("ddp", "dp4,tp2,pp2")
    )
    assert split > copies


def test_parameter_servers_use_no_nccl() -> None:
    answer = ec.forecast("resnet50", device=V100.name, gpus=4, strategy="parameter_server", batch=8)
    assert "communication" not in answer.peak_breakdown
