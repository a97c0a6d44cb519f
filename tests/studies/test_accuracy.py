from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("polars")
pytest.importorskip("torch")
pytest.importorskip("lightgbm")

import polars as pl

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_device
from epochcast.measure.tables.run_table import read_runs
from epochcast.predict.cost.software_setting import SoftwareSetting
from epochcast.predict.cost.spreads import KERNEL_PARTS
from studies.accuracy import gate, page, run
from studies.accuracy.figures import Figure, by_group, figure
from studies.accuracy.intervals import GivenRuns, ScoredIntervals, given_runs, scored_intervals, verdict
from studies.accuracy.leaks import core_of, has_relative
from studies.accuracy.left_out_table import LeftOutTable, read_left_out
from studies.accuracy.others import gated, justus_figures, report_figures
from studies.accuracy.questions import (
    ADAPTERS,
    DIFFUSION,
    FORWARD,
    KNOWN,
    NOT_MEASURED,
    ONE_NODE,
    OTHER,
    SEVERAL_NODES,
    VISION,
    question_of,
)
from studies.accuracy.scored_steps import EVERYTHING, evenly, fresh_steps, left_out_steps
from studies.accuracy.targets import Target, carried_by, device_targets, layer_targets, report_targets, step_targets
from studies.peers.run import image_networks
from studies.peers.whole_networks import PEERS, peer_ratios
from training.examples import Example

NAMES = ("K80", "T4", "V100-PCIE-32GB")
GPUS = (*NAMES, "L4")
HEAD = (
    "source,device,model,family,precision,mode,layout,batch,age,framework,kind,bound,shares,"
    "without_family,without_device,without_source\n"
)


def made_table(tmp_path: Path, rows: list[str]) -> LeftOutTable:
    path = tmp_path / "left_out.csv"
    path.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")
    return read_left_out(path)


def row(number: int, device: str = "RTX 3090", ratios: str = "1.1,0.9,", *, part: str = "convolution, half") -> str:
    """`ratios` are those without its family, its device, its source; its kernels are all of one `part`."""
    shares = " ".join(str(int(name == part)) for name in KERNEL_PARTS)
    step = f"timm,{device},net{number},family{number},amp_fp16,training,nchw,64,0.50,pytorch,fp16-nchw-training"
    return f"{step},kernels,{shares},{ratios}"


def with_forward(rows: list[str]) -> list[str]:
    """Behind some forward passes: intervals are fitted to both modes."""
    passes = [row(number, "L40S", "1.0,,").replace("training", "forward") for number in range(100, 132)]
    return [*(line.replace("timm", "forward passes") for line in passes), *rows]


def step(batch: int = 4, *, channels_last: bool = False, seconds: float = 1e-3) -> Example:
    recipe = Recipe(batch, optimizer="momentum", channels_last=channels_last)
    columns = zoo_model("mnist_cnn").trace(recipe).columns
    device = find_device("RTX 3090")
    return Example(columns, device, SoftwareSetting(channels_last), seconds, "timm", "mnist_cnn", "mnist", recipe)


def test_figures_by_hand() -> None:
    found = figure("family", "a", np.array([1.1, 0.8, np.nan]), np.array([1.0, 0.0, np.nan]))
    assert (found.n, found.holds) == (2, 0.5)
    assert found.mape == pytest.approx(0.15)
    assert found.bias == pytest.approx(-0.05)


def test_a_group_without_a_forecast_has_no_figures() -> None:
    assert figure("family", "a", np.array([np.nan]), failed=1) == Figure("family", "a", 0, None, None, None, None, 1)


def test_the_worst_group_is_first() -> None:
    assert [f.group for f in by_group("family", ["a", "b"], np.array([1.1, 1.5]))] == ["b", "a"]


def test_the_table_is_read_by_name(tmp_path: Path) -> None:
    table = made_table(tmp_path, [row(0), row(1, ratios="1.1,,")])
    assert table.family.tolist() == ["family0", "family1"]
    assert table.ratios["device"].tolist() == pytest.approx([0.9, np.nan], nan_ok=True)
    assert table.groups()[0] == "timm · RTX 3090 · amp_fp16 · training · NCHW"


def test_another_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "left_out.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(BadInput, match="expected the columns source, device"):
        read_left_out(path)
    with pytest.raises(BadInput, match="`make model` writes it"):
        read_left_out(tmp_path / "none.csv")


def test_the_committed_table_can_be_read_and_every_step_was_left_out_by_family() -> None:
    table = read_left_out()
    assert np.isfinite(table.ratios["family"]).all()
    assert np.isfinite(table.ratios["source"]).any() and np.isfinite(table.ratios["device"]).any()


def test_intervals_by_hand() -> None:
    """One inside, one 0.1 above; the score of the latter is its width and twenty times 0.1."""
    scored = ScoredIntervals(np.array([0.0, 0.4, 0.0]), np.array([-0.2, -0.2, np.nan]), np.array([0.3, 0.3, np.nan]))
    assert scored.inside.tolist() == pytest.approx([1, 0, np.nan], nan_ok=True)
    assert scored.median_width == pytest.approx(np.exp(0.5))
    assert scored.score == pytest.approx((0.5 + 0.5 + 20 * 0.1) / 2)


def test_intervals_of_other_devices_do_not_hold_for_one_that_differs(tmp_path: Path) -> None:
    good = [row(i, GPUS[i % 4], f"1.0,{1 + 0.01 * (i % 3)},") for i in range(24)]
    odd = [row(99, "RTX 3090", "1.0,3.0,")]
    inside = scored_intervals(made_table(tmp_path, with_forward(good + odd)))["device"].inside
    assert inside[-1] == 0
    assert np.nanmean(inside[:-1]) > 0.5


def test_intervals_of_a_known_device_come_from_the_other_folds(tmp_path: Path) -> None:
    table = made_table(tmp_path, with_forward([row(i, ratios=f"{1 + 0.01 * (i % 10):.2f},,") for i in range(80)]))
    inside = scored_intervals(table)["family"].inside
    assert np.isfinite(inside).all()
    assert inside.mean() > 0.8


def test_a_fold_does_not_widen_its_own_intervals(tmp_path: Path) -> None:
    """Families of one fold alone that are far off: none of their intervals holds."""
    table = made_table(tmp_path, with_forward([row(i, ratios="1.1,,") for i in range(80)]))
    is_odd = table.folds("family") == 0
    ratios = {**table.ratios, "family": np.where(is_odd, 4.0, 1.0)}
    inside = scored_intervals(replace(table, ratios=ratios))["family"].inside
    assert not inside[is_odd].any() and inside[~is_odd].all()


def test_kernels_that_are_less_sure_may_be_further_off(tmp_path: Path) -> None:
    sure = [row(i, ratios=f"{1 + 0.01 * (i % 10):.2f},,") for i in range(80)]
    unsure = [row(i, ratios=f"{1 + 0.1 * (i % 10):.2f},,", part="vector, half") for i in range(80)]
    intervals = scored_intervals(made_table(tmp_path, with_forward(sure + unsure)))["family"]
    widths = intervals.high - intervals.low
    assert widths[-80:].min() > 1.1 * widths[-160:-80].max()


def test_launch_bound_steps_have_no_interval_of_kernels(tmp_path: Path) -> None:
    rows = with_forward(
        [*(row(i, ratios="1.1,,") for i in range(80)), row(97, ratios="1.1,,").replace("kernels", "host")]
    )
    inside = scored_intervals(made_table(tmp_path, rows))["family"].inside
    assert np.isnan(inside[-1]) and np.isfinite(inside[:-1]).all()


def test_intervals_without_a_source_come_from_other_sources(tmp_path: Path) -> None:
    timm = [row(i, ratios=f"{1 + 0.01 * (i % 10):.2f},,") for i in range(80)]
    others = [row(i, ratios=f"1.0,,{ratio}").replace("timm", "other") for i, ratio in ((97, 1.04), (98, 3.0))]
    inside = scored_intervals(made_table(tmp_path, with_forward(timm + others)))["source"].inside
    assert inside[-2:].tolist() == [1, 0]
    assert np.isnan(inside[:-2]).all(), "never left out by source"


def test_the_runs_given_are_read_from_the_card() -> None:
    lines = [
        "## Devices never seen, 5 runs given to x",
        "| device |",
        "|---|",
        "| K80 | 336 | 6.5% | 4% | 90% |",
        "## I",
    ]
    assert given_runs("\n".join(lines)) == [GivenRuns("K80", 336, 0.065, 0.04, 0.9)]
    assert given_runs("# nothing\n") == []


@pytest.mark.parametrize(("holds", "said"), [(0.8, "too narrow"), (0.9, "as wanted"), (0.97, "too wide")])
def test_the_verdict_on_intervals(holds: float, said: str) -> None:
    assert verdict(holds) == said


def test_a_group_a_point_worse_is_named_and_one_that_is_gone_too() -> None:
    accepted = {"family": {"a": 0.10, "b": 0.10, "c": 0.10}}
    found = gate.regressions({"family": {"a": 0.115, "b": 0.105}}, accepted)
    assert found == ["family: a: MAPE 11.5%, was 10.0%", "family: c: no longer scored (was 10.0%)"]


def test_groups_of_few_rows_are_not_gated(tmp_path: Path) -> None:
    few, many = Figure("s", "few", 9, 0.1, 0.1, 0.0), Figure("s", "many", 10, 0.12341, 0.1, 0.0)
    scores = gate.scores_of([few, many])
    assert scores == {"s": {"many": 0.1234}}
    gate.write_scores(scores, tmp_path / "scores.json")
    assert gate.read_scores(tmp_path / "scores.json") == scores
    assert gate.read_scores(tmp_path / "none.json") == {}


def test_a_target_is_missed_by_its_worst_figure() -> None:
    target = Target("t", 1, (8.0, 5.0), (9.0, 6.5))
    assert target.verdict == "missed by 1.5 points"
    assert Target("t", 1, (1.1,), (1.0,), "ms").verdict == "met"


def test_families_that_carry_the_error_are_named() -> None:
    ratios, families = np.array([2.0, 1.1, 1.1, 1.1]), np.array(["bad", "a", "b", "c"])
    assert carried_by(ratios, families, most=1) == (
        "bad carry 77% of the error on 25% of the rows; without them 10.0 / 10.0"
    )


def test_every_device_counts_the_same(tmp_path: Path) -> None:
    table = made_table(tmp_path, [row(0, "K80", "1.0,1.4,"), *(row(i, "V100", "1.0,1.0,") for i in (1, 2))])
    (target,) = device_targets(table, [])
    assert target.ours[0] == pytest.approx(20.0)


def test_the_other_studies_are_read_as_they_wrote_them() -> None:
    layers, report = justus_figures(), report_figures()
    assert len(layer_targets(layers)) == 12
    assert [t.wanted for t in report_targets(report)] == [(6.0,), (5.0,)]
    assert {f.split for f in gated(layers, report)} == {"studies/justus", "studies/correction_factor"}


def test_peers_answer_on_the_same_steps_and_the_page_shows_them(tmp_path: Path) -> None:
    table = made_table(tmp_path, [row(i).replace(f"net{i}", "mnist_cnn") for i in range(4)])
    steps = [step(64) for _ in range(4)]
    ratios = peer_ratios(steps, table)
    assert set(ratios) == set(PEERS)
    assert (ratios["roofline"] > 0).all()
    assert np.isnan(ratios["layer_linear"]).all()  # four steps teach nobody
    assert image_networks(table, ratios).startswith("## Image networks")


def test_a_table_of_other_steps_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="written from other measurements"):
        made_table(tmp_path, [row(0)]).check([step()])


def test_without_measurements_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("EPOCHCAST_DATA", raising=False)
    monkeypatch.setattr("sys.argv", ["run"])
    assert run.main() == 2
    assert capsys.readouterr().out.startswith("accuracy: EPOCHCAST_DATA names no folder")


def test_a_relative_under_another_label_is_found_only_across_folds(tmp_path: Path) -> None:
    assert core_of("tv_resnet34", "tv") == core_of("seresnext50_32x4d", "resnet") == "resnet"
    names = ["tv_resnet34,tv", *(f"resnet{i},family{i}" for i in range(8)), "vgg11,vgg"]
    rows = [row(0).replace("net0,family0", name) for name in names]
    assert has_relative(made_table(tmp_path, rows)).tolist() == [True] * 9 + [False]


def test_a_target_met_on_easier_rows_says_so() -> None:
    target = Target("t", 1, (8.0,), (5.0,), caveat="a relative was trained on")
    assert target.verdict == "met, with a caveat"
    assert page.target_table([target]).startswith("1 of 1 are met.")


def test_a_target_of_intervals_is_missed_by_width_and_by_coverage() -> None:
    wide = Target("t", 1, (12.0,), (10.0,), width=(1.8, 2.4), holds=0.9)
    assert wide.verdict == "missed too wide"
    assert Target("t", 1, (12.0,), (10.0,), width=(1.8, 1.7), holds=0.6).verdict == "missed holds 60%"
    assert Target("t", 1, (12.0,), (10.0,), width=(1.8, 1.7), holds=0.9).is_met


def test_samples_are_evenly_spaced() -> None:
    assert evenly(10, 5) == [0, 2, 4, 6, 8]
    assert evenly(3, 5) == [0, 1, 2]


def asked(model: str, **cells: object) -> str:
    """The question of a row on an A100."""
    row = {"model": model, "device": "A100", "batch_per_gpu": 2, "step_seconds": 1.0, "source": "s", **cells}
    (run,), failures = read_runs([row])
    assert not failures
    return question_of(run)


def test_rows_ask_what_their_network_is_for() -> None:
    assert asked("resnet50", input_shape="3x224x224") == VISION
    assert asked("timm:resnet50") == asked("resnet50") == VISION
    assert asked("resnet50", mode="forward") == FORWARD
    assert asked("gpt2", sequence_length=1024) == ONE_NODE
    assert asked("llama2_7b", sequence_length=1024, gpus=16, nodes=2) == SEVERAL_NODES
    assert asked("llama2_7b", sequence_length=1024, task="lora_finetuning") == ADAPTERS
    assert asked("stable-diffusion-v2-base", input_shape="4x64x64") == DIFFUSION
    assert asked("gnmt") == OTHER


def left_out_frame(tmp_path: Path, rows: list[str]) -> pl.DataFrame:
    table = made_table(tmp_path, with_forward(rows))
    names = {(str(s), str(m)): VISION for s, m in zip(table.source, table.model, strict=True)}
    return left_out_steps(table, scored_intervals(table), names).filter(pl.col("source") != "forward passes")


def test_a_trained_step_is_scored_by_what_it_was_left_out_of(tmp_path: Path) -> None:
    """The device known by other families, and the device left out; never by the shipped model."""
    frame = left_out_frame(tmp_path, [row(i, NAMES[i % 2], "1.1,0.9,") for i in range(16)])
    found = frame.group_by("gpu", "left_out").agg(pl.col("predicted_seconds").first()).sort("gpu")
    assert found.rows() == [(KNOWN, "family", 1.1), (NOT_MEASURED, "device", 0.9)]
    assert EVERYTHING not in set(frame["left_out"])
    assert set(frame["question"]) == {VISION}


def test_the_source_is_left_out_where_others_measured_the_device(tmp_path: Path) -> None:
    timm = [row(i, ratios="1.1,,") for i in range(8)]
    other = [row(97, ratios="1.1,,1.3").replace("timm", "other")]
    frame = left_out_frame(tmp_path, timm + other).filter(pl.col("source") == "other")
    assert frame.select("left_out", "predicted_seconds").rows() == [("source", 1.3)]


def test_no_group_of_steps_decides_alone(tmp_path: Path) -> None:
    assert len(left_out_frame(tmp_path, [row(i, ratios="1.1,,") for i in range(100)])) == 60


def test_a_launch_bound_step_has_the_interval_of_its_host(tmp_path: Path) -> None:
    rows = [row(97, ratios="1.0,,").replace("kernels", "host"), *(row(i, ratios="1.0,,") for i in range(80))]
    frame = left_out_frame(tmp_path, rows)
    widths = dict(zip(frame["model"], frame["high_seconds"] / frame["low_seconds"], strict=True))
    assert widths["net97"] > 3 > widths["net1"]


def test_sources_that_no_training_reads_are_forecast_and_refusals_counted(tmp_path: Path) -> None:
    cells = {"device": "V100", "batch_per_gpu": 32, "samples_per_second": None, "quality": "ok", "nodes": 1, "gpus": 1}
    rows = [
        {"source": "fresh", "model": "resnet18", "step_seconds": 0.05, **cells},
        {"source": "fresh", "model": "nonet", "step_seconds": 0.05, **cells},
        {"source": "trained", "model": "resnet18", "step_seconds": 0.05, **cells},
    ]
    for name in ("runs", "runs_more", "runs_2026", "llm_runs", "user_runs"):
        pl.DataFrame(rows).head(3 if name == "runs" else 0).write_parquet(tmp_path / f"{name}.parquet")
    frame = fresh_steps(tmp_path, {"trained"})
    assert set(frame["source"]) == {"fresh"}
    assert sorted(frame["is_forecast"]) == [False, True]
    (answered,) = frame.filter("is_forecast").to_dicts()
    assert answered["low_seconds"] <= answered["predicted_seconds"] <= answered["high_seconds"]
    figures = run.figures_by(frame, ("source",)).to_dicts()
    assert [(f["n"], f["failed"]) for f in figures] == [(1, 1)]


def test_gpt2_on_open_gpus_says_how_many(tmp_path: Path) -> None:
    frame = left_out_frame(tmp_path, [row(i, NAMES[i % 2], "1.1,0.9,") for i in range(16)])
    named = frame.with_columns(source=pl.lit("modded_nanogpt"))
    by_name = {target.what: target for target in step_targets(named, frame)}
    assert by_name["GPT-2, bf16, compiled"].caveat.startswith("2 GPUs are open")
    assert by_name["GPU and format known, network new"].ours[0] == pytest.approx(10.0)


def test_page_and_readme_show_the_committed_figures() -> None:
    by_question = pl.read_csv(run.FILES / "by_question.csv")
    assert page.question_table(by_question) in run.PAGE.read_text(encoding="utf-8")
    assert page.readme_table(by_question) in run.README.read_text(encoding="utf-8")


def test_the_page_is_short_and_its_picture_small() -> None:
    assert len(run.PAGE.read_text(encoding="utf-8").splitlines()) <= 120
    assert run.PICTURE.stat().st_size < 300_000
