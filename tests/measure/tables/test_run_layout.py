from typing import Any

import pytest

from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_device
from epochcast.measure.tables.run_layout import RunLayout, check_copies, run_layout

NODES = "n_nodes depends on system (8 GPU per node DGX; NVL72 for GB)"


def layout(note: str, **cells: Any) -> RunLayout | None:
    row = {"model": "LLAMA3_70B", "device": "H100-SXM5-80GB", "gpus": 32, "batch_per_gpu": 1.0, "global_batch": 32.0}
    return run_layout({**row, "note": note, **cells})


def test_a_row_whose_note_says_no_degrees_has_no_layout() -> None:
    assert layout("median of 5 runs") is None


def test_degrees_become_a_product_and_its_micro_batches() -> None:
    """32 GPUs over TP 4 times PP 4 leave two replicas, which share 32 sequences one at a time: 16 each."""
    found = layout(f"TP=4; PP=4; CP=1; VP=5; EP=n/a; {NODES}")
    assert found == RunLayout("dp2,tp4,pp4,vp5,zero1", 16, 4)


def test_boxes_hold_eight_and_racks_sixty_four() -> None:
    note = f"TP=4; PP=8; CP=1; VP=4; EP=n/a; {NODES}"
    cells = {"gpus": 256, "global_batch": 1536.0}
    assert [getattr(layout(note, device=name, **cells), "nodes", None) for name in ("B200", "GB200")] == [32, 4]
    assert getattr(layout("TP=4; PP=8", **cells), "nodes", 0) is None


def test_shards_of_everything_are_fsdp() -> None:
    found = layout("FSDP=64; TP=1; PP=1; CP=1; VP=n/a; EP=n/a", gpus=64, batch_per_gpu=2.0, global_batch=256.0)
    assert found == RunLayout("fsdp", 2, None)


def test_experts_and_sequences_are_parts_of_the_product() -> None:
    """32 GPUs over PP 2 leave 16 replicas, over TP 2 times PP 4 times CP 2 two; experts take no GPUs of their own."""
    assert layout("TP=1; PP=2; CP=1; EP=16") == RunLayout("dp16,pp2,ep16,zero1", 2, None)
    assert layout("TP=2; PP=4; CP=2; VP=5; EP=n/a") == RunLayout("dp2,tp2,pp4,cp2,vp5,zero1", 16, None)


def test_degrees_that_do_not_divide_the_gpus_are_refused() -> None:
    with pytest.raises(BadInput, match="TP=3 times PP=1 times CP=1 does not divide 32 GPUs"):
        layout("TP=3; PP=1")


def test_a_batch_that_is_no_whole_number_of_micro_batches_is_refused() -> None:
    with pytest.raises(BadInput, match="batch of 20 is not a whole number of micro-batches of 1 on 8 replicas"):
        layout("TP=4; PP=1", global_batch=20.0)


def test_columns_count_before_a_note() -> None:
    """256 sequences of 64 GPUs over tp 4 times pp 2: eight replicas with micro-batches of two make 16 rounds."""
    cells = {"gpus": 64, "tp": 4, "pp": 2, "dp": 8, "zero": 1, "batch_per_gpu": 2.0, "global_batch": 256.0}
    assert layout("TP=1; PP=41", **cells) == RunLayout("dp8,tp4,pp2,zero1", 16, None)
    assert layout("", **{**cells, "zero": 0, "vp": 2}) == RunLayout("dp8,tp4,pp2,vp2", 16, None)


def test_nemo_interleaves_every_layer_where_the_row_has_no_chunks() -> None:
    """96 layers over 8 stages: twelve chunks each, if the rounds divide into the stages."""
    cells = {"gpus": 32, "dp": 1, "tp": 4, "pp": 8, "zero": 1, "layers": 96, "framework": "nemo/megatron"}
    found = layout("", **cells, batch_per_gpu=1.0, global_batch=64.0)
    assert found is not None and found.strategy.startswith("dp1,tp4,pp8,vp12")
    assert "vp" not in getattr(layout("", **cells, batch_per_gpu=1.0, global_batch=63.0), "strategy", "vp")
    assert "vp" not in getattr(layout("", **{**cells, "framework": "nanotron"}), "strategy", "vp")


def test_shards_of_everything_in_columns() -> None:
    cells = {"gpus": 8, "dp": 8, "batch_per_gpu": 1.0, "global_batch": 8.0}
    assert layout("", **cells, zero=3) == RunLayout("zero3", 1, None)
    assert layout("", **cells, zero=1) == RunLayout("dp8,zero1", 1, None)
    with pytest.raises(BadInput, match="ZeRO 3 beside TP is not modelled"):
        layout("", **{**cells, "dp": 4, "tp": 2}, zero=3)


def test_columns_that_are_not_the_gpus_are_refused() -> None:
    with pytest.raises(BadInput, match="DP=3 times TP=2 times PP=1 times CP=1 is not 8 GPUs"):
        layout("", gpus=8, dp=3, tp=2)


def test_ranks_that_share_a_state_are_read_from_the_note() -> None:
    cells = {"gpus": 16, "nodes": 2, "dp": 16, "global_batch": 16.0}
    assert getattr(layout("zero1=8; packed", **cells, zero=1), "strategy", "") == "zero1:8"
    assert getattr(layout("zero1=-1", **cells, zero=1), "strategy", "") == "dp16,zero1"
    assert getattr(layout("sequence 4096; HSDP", **cells, zero=3), "strategy", "") == "zero3:8"
    assert getattr(layout("sequence 4096; FSDP", **cells, zero=3), "strategy", "") == "zero3"


def test_megatrons_distributed_optimizer_shards_its_state() -> None:
    cells = {"gpus": 8, "dp": 8, "global_batch": 8.0}
    assert getattr(layout("", **cells, optimizer="adam (distributed)"), "strategy", "") == "dp8,zero1"
    assert getattr(layout("", **cells, optimizer="distributed shampoo"), "strategy", "") == "dp8"
    assert getattr(layout("", **cells, optimizer="adam (distributed)", zero=0), "strategy", "") == "dp8"


def test_the_scripts_of_a_source_say_what_its_rows_do_not() -> None:
    """FlagPerf's ask Megatron for its distributed optimizer."""
    cells = {"gpus": 8, "dp": 4, "tp": 2, "global_batch": 8.0, "framework": "megatron"}
    assert getattr(layout("", **cells, source="flagperf"), "strategy", "") == "dp4,tp2,zero1"
    assert getattr(layout("", **cells, source="flagperf", zero=0), "strategy", "") == "dp4,tp2"
    assert getattr(layout("", **cells, source="megatron_lm"), "strategy", "") == "dp4,tp2"


def test_nemo_exchanges_tensor_parallel_pieces_beside_products() -> None:
    cells = {"gpus": 8, "dp": 2, "tp": 4, "zero": 1, "global_batch": 8.0}
    assert getattr(layout("", **cells, framework="nemo megatron"), "strategy", "") == "dp2,tp4,overlap,zero1"
    assert getattr(layout("", **cells, framework="megatron-lm"), "strategy", "") == "dp2,tp4,zero1"
    assert getattr(layout("TP=4; PP=1", framework="nemo"), "strategy", "") == "dp8,tp4,overlap,zero1"


def test_experts_that_are_spread_over_an_unknown_number_of_gpus_are_refused() -> None:
    with pytest.raises(BadInput, match="over how many GPUs experts were spread"):
        layout("kernels TE + DeepEP", dp=32, zero=3)


def test_parameters_that_no_gpu_can_hold_say_that_the_layout_is_missing() -> None:
    row = {"model": "llama2_70b", "gpus": 8}
    with pytest.raises(BadInput, match=r"138 GB.*how the model was split"):
        check_copies(row, "llama2_70b", "none", find_device("H100-SXM5-80GB"))
    check_copies(row, "llama2_70b", "nf4", find_device("H100-SXM5-80GB"))
    check_copies(row, "llama2_70b", "none", find_device("B200"))
    check_copies({**row, "strategy": "fsdp"}, "llama2_70b", "none", find_device("H100-SXM5-80GB"))


@pytest.mark.parametrize(
    ("note", "cells", "strategy"),
    [
        ("low_level_zero", {"zero": 1}, "zero1"),
        ("gemini", {"zero": 3}, "zero3"),
        ("several GPUs = layers spread by device_map, not data-parallel", {}, "model"),
        ("", {"zero": 3, "gpus": 1}, None),
        ("", {"zero": 3, "strategy": "fsdp"}, None),
    ],
)
def test_stages_and_spread_layers_need_no_degrees(note: str, cells: dict[str, Any], strategy: str | None) -> None:
    found = layout(note, grad_accum=2, **cells)
    assert (found and (found.strategy, found.accumulate)) == (strategy and (strategy, 2))
