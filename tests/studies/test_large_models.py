import pytest
from tests.every import every

from studies.large_models.run import PAGE, TABLE, Published, teraflops

GPT_145B = next(row for row in TABLE if row.gpus == 1536)


def test_ranks_and_batches_come_out_even() -> None:
    for row in TABLE:
        assert row.data * row.tensor * row.pipeline == row.gpus
        assert row.batch % (row.data * row.micro_batch) == 0
        assert row.layers % (row.pipeline * row.chunks) == 0


def test_a_step_by_hand() -> None:
    """96·2304·2048·80·12288²·(1 + 2048/73728 + 51200/15728640) = 5.64e18 flops; 24.8 s at 148 Tflop/s on 1,536 GPUs."""
    assert GPT_145B.flops == pytest.approx(5.64e18, rel=0.01)
    assert teraflops(GPT_145B, GPT_145B.flops / 1536 / 148e12) == pytest.approx(148)
    assert GPT_145B.strategy == "dp24,tp8,pp8,vp2,even"


@every("row", TABLE, ids=lambda row: f"{row.billions} B")
def test_the_page_has_every_row(row: Published) -> None:
    assert f"| {row.billions:,.1f} B | {row.gpus:,} |" in PAGE.read_text(encoding="utf-8")
