"""What is read from elsewhere, each with files to read and the way epochcast reads them.

A target's `make` builds its strategy in the process that runs it: seeds of some need torch, keras or onnx.
"""

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from fuzz import logs, mutations, seeds
from fuzz.mutations import damaged, document_bytes, mutated, text_of, toml_of


@dataclass(frozen=True)
class Target:
    """One kind of input. `read` gets the folder in which the file lies, and its bytes."""

    make: Callable[[], st.SearchStrategy[Any]]
    read: Callable[[Path, Any], object]


# ---- models -------------------------------------------------------------------------------------


def _forecast(reference: str) -> None:
    """As far as a user comes: what it is made of, and its step."""
    from epochcast import api
    from epochcast.describe.capture.inspection import inspect_graph
    from epochcast.describe.capture.resolve import find_model

    model = find_model(reference, allow_code=False)
    json.dumps(inspect_graph(model).as_dict())
    json.dumps(api.forecast(model, device="V100", batch=4).as_dict())


def _model_file(name: str) -> Callable[[Path, bytes], None]:
    def read(folder: Path, content: bytes) -> None:
        file = folder / name
        file.write_bytes(content)
        _forecast(("hf:" if name == "config.json" else "") + str(file))

    return read


def _onnx() -> st.SearchStrategy[bytes]:
    models = seeds.onnx_models()
    changed = st.sampled_from(models).flatmap(_onnx_changed)
    broken = st.sampled_from([model.SerializeToString() for model in models]).flatmap(damaged)
    return st.one_of(changed, changed, broken)


@st.composite
def _onnx_changed(draw: st.DrawFn, model: Any) -> bytes:
    """Other attributes, sizes, names and orders."""
    from onnx import helper, numpy_helper

    copy = type(model)()
    copy.CopyFrom(model)
    for _ in range(draw(st.integers(1, 3))):
        node = copy.graph.node[draw(st.integers(0, len(copy.graph.node) - 1))]
        tensor = copy.graph.initializer[draw(st.integers(0, len(copy.graph.initializer) - 1))]
        whole = draw(st.sampled_from([0, -1, 1, 2, 3, 5, 1000, 2**31, 2**40, 2**62, -(2**62)]))
        match draw(st.sampled_from(["attribute", "attribute", "dim", "values", "op", "input", "lose", "lose", "size"])):
            case "attribute" if node.attribute:
                attribute = node.attribute[draw(st.integers(0, len(node.attribute) - 1))]
                value = draw(st.sampled_from([whole, [whole], [whole] * 2, [1] * 9, 0.5, "x", [float("inf")], "SAME"]))
                attribute.CopyFrom(helper.make_attribute(attribute.name, value))
            case "dim" if tensor.dims:
                tensor.dims[draw(st.integers(0, len(tensor.dims) - 1))] = whole
            case "values" if tensor.data_type == 7:
                values = [
                    draw(st.sampled_from([0, -1, 1, 7, 1000, 2**31, 2**62])) for _ in range(draw(st.integers(0, 4)))
                ]
                import numpy as np

                tensor.CopyFrom(numpy_helper.from_array(np.array(values, dtype=np.int64), tensor.name))
            case "op":
                others = [
                    "Add",
                    "Conv",
                    "Gemm",
                    "MatMul",
                    "Expand",
                    "Tile",
                    "ConstantOfShape",
                    "Range",
                    "Where",
                    "Pow",
                    "Resize",
                    "Pad",
                    "LSTM",
                    "Einsum",
                ]
                node.op_type = draw(st.sampled_from(others))
            case "input" if node.input:
                names = [name for other in copy.graph.node for name in (*other.input, *other.output)]
                node.input[draw(st.integers(0, len(node.input) - 1))] = draw(st.sampled_from([*names, "", "nowhere"]))
            case "lose":
                parts = draw(st.sampled_from([node.input, node.attribute, node.output]))
                del parts[-1:]
            case "size":
                dims = copy.graph.input[0].type.tensor_type.shape.dim
                dims[draw(st.integers(0, len(dims) - 1))].dim_value = whole
            case _:
                pass
    return bytes(copy.SerializeToString())


def _keras() -> st.SearchStrategy[bytes]:
    return document_bytes(seeds.keras_documents(), text_of)


def _archive() -> st.SearchStrategy[bytes]:
    configs = st.sampled_from(seeds.keras_documents()).flatmap(mutated).map(text_of).map(seeds.keras_archive)
    whole = seeds.keras_archive(text_of(seeds.keras_documents()[0]))
    return st.one_of(configs, damaged(whole))


# ---- tables -------------------------------------------------------------------------------------


@st.composite
def _tables(draw: st.DrawFn, rows: list[dict[str, Any]]) -> tuple[str, bytes]:
    """Some rows with wrong cells, in one of the formats."""
    table = [dict(row) for row in rows]
    for _ in range(draw(st.integers(1, 4))):
        row = table[draw(st.integers(0, len(table) - 1))]
        column = draw(st.sampled_from(sorted(row)))
        match draw(st.sampled_from(["cell", "cell", "cell", "lose", "column"])):
            case "cell":
                row[column] = mutations.copied(draw(mutations.NASTY))
            case "lose":
                row.pop(column)
            case "column":
                value = draw(mutations.NASTY)
                for other in table:
                    other[column] = value
    ending = draw(st.sampled_from(["csv", "jsonl", "parquet"]))
    content = _table_bytes(table, ending)
    return ending, draw(damaged(content)) if draw(st.integers(0, 5)) == 0 else content


def _table_bytes(table: list[dict[str, Any]], ending: str) -> bytes:
    if ending == "jsonl":
        return b"\n".join(text_of(row) for row in table) + b"\n"
    import polars as pl

    columns = list(dict.fromkeys(name for row in table for name in row))
    texts = {name: [_cell(row.get(name)) for row in table] for name in columns}
    if ending == "csv":
        import csv

        words = io.StringIO()
        writer = csv.writer(words)
        writer.writerow(columns)
        writer.writerows(zip(*texts.values(), strict=True))
        return words.getvalue().encode(errors="surrogatepass")
    buffer = io.BytesIO()
    series = []
    for name in columns:
        values = [row.get(name) for row in table]
        texts_of_it = [None if v is None else str(v)[:99].encode(errors="replace").decode() for v in values]
        try:
            column = pl.Series(name, values)
            pl.DataFrame([column]).write_parquet(io.BytesIO())
        except Exception:  # there is no column of such values: as texts
            column = pl.Series(name, texts_of_it)
        series.append(column)
    pl.DataFrame(series).write_parquet(buffer)
    return buffer.getvalue()


def _cell(value: Any) -> str:
    return "" if value is None else str(value)[:6000]


def _evaluated(folder: Path, table: tuple[str, bytes]) -> None:
    from epochcast.measure.evaluate.evaluate import evaluate

    file = folder / f"table.{table[0]}"
    file.write_bytes(table[1])
    answer = evaluate(file, by=["device"])
    json.dumps(answer.as_dict())
    answer.save(folder / "out.csv")


def _given_single(folder: Path, table: tuple[str, bytes]) -> None:
    from epochcast.measure.evaluate.evaluate import evaluate

    file = folder / f"table.{table[0]}"
    file.write_bytes(table[1])
    json.dumps(evaluate(file, given_single=True, with_doubtful=True).as_dict())


def _calibrated(folder: Path, table: tuple[str, bytes]) -> None:
    from epochcast.hardware.catalogue import find_device
    from epochcast.measure.fit.calibrate import calibrate
    from epochcast.predict.cost.cost_models import find_cost_model
    from epochcast.surfaces.cli.calibrate_command import rows_of

    file = folder / f"table.{table[0]}"
    file.write_bytes(table[1])
    answer = calibrate(rows_of(file), find_device("V100"), find_cost_model(), date="2026-01-01")
    json.dumps(answer.as_dict())


RUNS = [
    seeds.RUN,
    {**seeds.RUN, "gpus": 1, "global_batch": 32},
    {**seeds.RUN, "model": "alexnet", "input_shape": None, "gpus": 1},
]


# ---- what epochcast itself wrote ----------------------------------------------------------------


def _measurements() -> st.SearchStrategy[bytes]:
    lines = seeds.measurement_lines()
    return document_bytes(
        [lines], lambda rows: b"".join(text_of(row) + b"\n" for row in rows if isinstance(rows, list))
    )


def _fitted(folder: Path, content: bytes) -> None:
    from epochcast.measure.bench import measurements
    from epochcast.measure.fit.local_fit import fit_files

    file = folder / "measured.jsonl"
    file.write_bytes(content)
    measurements.read(file)
    json.dumps(fit_files([file], date="2026-01-01").as_dict())


def _local_model() -> st.SearchStrategy[bytes]:
    from tempfile import TemporaryDirectory

    from epochcast.measure.fit.local_fit import fit_files
    from epochcast.predict.cost.local_file import save_local

    with TemporaryDirectory() as folder:
        file = Path(folder) / "measured.jsonl"
        file.write_bytes(b"".join(text_of(row) + b"\n" for row in seeds.measurement_lines()))
        model = fit_files([file], date="2026-01-01").model
        save_local(model, Path(folder) / "local.json")
        document = json.loads((Path(folder) / "local.json").read_text())
    return document_bytes([document], text_of)


def _local_read(folder: Path, content: bytes) -> None:
    from epochcast import api

    file = folder / "local.json"
    file.write_bytes(content)
    json.dumps(api.forecast("mnist_cnn", batch=4, device="local", profile=file).as_dict())


def _captures() -> st.SearchStrategy[bytes]:
    return document_bytes([seeds.trace_document()], seeds.gzipped)


def _capture_read(folder: Path, content: bytes) -> None:
    """A damaged capture costs a warning and is made again."""
    import os

    from epochcast import api
    from epochcast.describe.capture.capture_cache import CachedModel
    from epochcast.describe.capture.spec import spec_model

    os.environ["EPOCHCAST_CACHE"] = str(folder)
    fresh = spec_model(seeds.LAYERS, "n", "n")
    model = CachedModel("n", {"reference": "n"}, lambda: fresh)
    for file in folder.glob("*.gz"):
        file.unlink()
    api.forecast(model, device="V100", batch=4)
    files = list(folder.glob("*.gz"))
    assert files
    for file in files:  # the network, and what was derived of it
        file.write_bytes(content)
    again = CachedModel("n", {"reference": "n"}, lambda: fresh)
    json.dumps(api.forecast(again, device="V100", batch=4).as_dict())


def _profile(folder: Path, content: bytes) -> None:
    import os

    from epochcast import api
    from epochcast.hardware.catalogue import find_device
    from epochcast.hardware.profile import profile_path

    os.environ["EPOCHCAST_PROFILES"] = str(folder)
    profile_path(find_device("V100")).write_bytes(content)
    json.dumps(api.forecast("mnist_cnn", device="V100", batch=4).as_dict())


# ---- what a user writes -------------------------------------------------------------------------


def _campaign(folder: Path, content: bytes) -> None:
    from epochcast.measure.bench.campaign_file import read_campaign

    file = folder / "campaign.toml"
    file.write_bytes(content)
    read_campaign(file, "cpu")


def _job_file(folder: Path, content: bytes) -> None:
    from epochcast.predict.forecast.forecaster import forecast_job
    from epochcast.predict.forecast.job_file import read_jobs
    from epochcast.predict.forecast.session import Session

    file = folder / "epochcast.toml"
    file.write_bytes(content)
    for job in read_jobs(file):
        session = Session(None, allow_code=False)
        json.dumps(forecast_job(job.job, job.where.placement(job.job.precision), session).as_dict())


def _config(folder: Path, content: bytes) -> None:
    from epochcast import api

    file = folder / "settings.json"
    file.write_bytes(content)
    json.dumps(api.forecast("mnist_cnn", device="V100", batch=4, config=[file]).as_dict())


def _sheet(folder: Path, content: bytes) -> None:
    from epochcast import api

    file = folder / "mine.toml"
    file.write_bytes(content)
    json.dumps(api.forecast("mnist_cnn", device=str(file), batch=4).as_dict())


def _units(folder: Path, words: str) -> None:
    from epochcast import units
    from epochcast.errors import EpochcastError

    for parse in (
        units.parse_bytes, units.parse_rate, units.parse_flops_rate, units.parse_watts, units.parse_hertz,
        units.parse_seconds, units.parse_seconds_per_sample, units.parse_dollars_per_hour, units.parse_fraction,
        units.parse_shape, units.parse_uneven,
    ):  # fmt: skip
        try:
            value: Any = parse(words)
        except EpochcastError:
            continue
        for show in (units.show_seconds, units.show_bytes, units.show_count, units.show_dollars):
            if isinstance(value, int | float):
                show(value)


_UNIT_WORDS = st.one_of(
    mutations.WORDS,
    st.from_regex(
        r"[0-9²٣.e+\-]{0,30} ?(k|M|Gi|G|T|µ|m)?(B|b|bit|FLOPS|Hz|W|s|h|min|%|x[0-9]+|\.\.[0-9]{1,400}|/64|/s|/h)?"
    ),
    st.integers(1, 6000).map(lambda n: "9" * n),
    st.integers(1, 6000).map(lambda n: "3x" + "9" * n),
    st.integers(1, 400).map(lambda n: "1.." + "9" * n),
    st.integers(1, 3000).map(lambda n: "1h" * n),
)

_OPTIONS: Mapping[str, Any] = {
    "batch": 8, "global_batch": None, "epochs": 1, "samples": 1000, "dataset": None, "gpus": 1, "nodes": 1,
    "strategy": "ddp", "precision": "fp32", "optimizer": "sgd", "accumulate": 1, "input_shape": None,
    "mode": "training",
    "link": None, "topology": None, "freeze": (), "loader_seconds": None, "cpus": None, "framework": "pytorch",
    "framework_version": None, "compile": "eager", "uneven": 0.0, "allreduce": None,
}  # fmt: skip


@st.composite
def _calls(draw: st.DrawFn) -> dict[str, Any]:
    """Keywords of `forecast`, some of them nasty."""
    from epochcast.predict.forecast.job import JOB_OPTIONS
    from epochcast.predict.forecast.where import PLACE_OPTIONS

    names = sorted({option.name for option in (*JOB_OPTIONS, *PLACE_OPTIONS)} - {"model"})
    call = {name: value for name, value in _OPTIONS.items() if name in names and value is not None}
    call |= {"device": "A100", "model": draw(st.sampled_from(["mnist_cnn", "lenet5", "nanogpt", "lstm"]))}
    for _ in range(draw(st.integers(1, 3))):
        call[draw(st.sampled_from([*names, "model"]))] = draw(
            st.one_of(mutations.NASTY, st.sampled_from(["tp2,pp2", "zero3", "fsdp", "dp2,ep4", "fp8", "bf16", "adam"]))
        )
    return call


def _called(folder: Path, call: dict[str, Any]) -> None:
    from epochcast import api

    call = dict(call)
    model = call.pop("model")
    if isinstance(model, str) and ":" in model:
        return  # would run code
    json.dumps(api.forecast(model, **call).as_dict())


TARGETS: Mapping[str, Target] = {
    "units": Target(lambda: _UNIT_WORDS, _units),
    "options": Target(_calls, _called),
    "spec": Target(lambda: document_bytes([seeds.LAYERS, seeds.WORDS], text_of), _model_file("net.json")),
    "spec_toml": Target(lambda: document_bytes([seeds.LAYERS, seeds.WORDS], toml_of), _model_file("net.toml")),
    "saved_spec": Target(lambda: document_bytes([seeds.saved_spec()], text_of), _model_file("saved.json")),
    "onnx": Target(_onnx, _model_file("net.onnx")),
    "keras": Target(_keras, _model_file("keras.json")),
    "keras_archive": Target(_archive, _model_file("net.keras")),
    "hf": Target(lambda: document_bytes(seeds.HF, text_of), _model_file("config.json")),
    "runs": Target(lambda: _tables(RUNS), _evaluated),
    "language_runs": Target(lambda: _tables([seeds.LANGUAGE_RUN, seeds.LANGUAGE_RUN]), _evaluated),
    "given_single": Target(lambda: _tables(RUNS), _given_single),
    "calibrate": Target(lambda: _tables(RUNS), _calibrated),
    "ops": Target(lambda: _tables(seeds.OPS), _evaluated),
    "layers": Target(lambda: st.one_of(_tables([seeds.CONVOLUTION] * 2), _tables([seeds.DENSE] * 2)), _evaluated),
    "report": Target(lambda: _tables([seeds.REPORT] * 2), _evaluated),
    "measurements": Target(_measurements, _fitted),
    "local_model": Target(_local_model, _local_read),
    "captures": Target(_captures, _capture_read),
    "profile": Target(lambda: damaged(seeds.profile_text()), _profile),
    "campaign": Target(lambda: document_bytes([seeds.CAMPAIGN], toml_of), _campaign),
    "job_file": Target(lambda: document_bytes([seeds.JOB_FILE], toml_of), _job_file),
    "log": Target(logs.logs, logs.tracked),
    "events": Target(logs.event_files, logs.tracked),
    "config": Target(lambda: document_bytes(seeds.CONFIGS, text_of), _config),
    "sheet": Target(lambda: document_bytes([seeds.SHEET, seeds.SHEET_LIKE], toml_of), _sheet),
}
