"""Forecasts of single operators (the columns of `ops`), device by device.

A benchmark of one op runs it again and again. The host starts one while the device runs the one before, so what is
timed is whichever is slower:

    seconds = (kernel³ + call³)^⅓        the larger of the two, smoothed; `call` is the host's share
"""

from collections.abc import Callable

import numpy as np
import polars as pl

from epochcast.errors import BadInput, EpochcastError
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.measure.evaluate.op_table import DTYPES, FAMILIES, op_columns, op_setting
from epochcast.measure.evaluate.predicted import Predicted, Progress
from epochcast.measure.evaluate.scores import Array
from epochcast.measure.tables.row_errors import FailedRow, InvalidCell
from epochcast.measure.tables.typed_columns import typed
from epochcast.predict.cost.calibrated import Calibrated
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.cost.cost_models import Shipped
from epochcast.predict.cost.learned import Learned, load_learned

SIZES = (
    "batch", "m", "n", "k", "hidden", "timesteps", "in_channels", "out_channels", "in_height", "in_width",
    "kernel_height", "kernel_width", "stride_height", "stride_width", "pad_height", "pad_width", "groups",
    "dilation_height", "dilation_width", "query_length", "key_length", "heads", "kv_heads", "head_dim", "head_dim_v",
    "window",
)  # fmt: skip
TEXTS = ("device", "source", "family", "op", "phase", "dtype")
# Rows costed at once, to bound the memory for their features.
CHUNK = 20_000


# The least time of a single call from Python, by family: the host's share. Medians over devices of the
# 1 % quantile of NeuSight's tables (MIT).
CALL_SECONDS = {"elementwise": 2.6e-5, "softmax": 3.3e-5, "layernorm": 4.6e-5, "matmul": 3.4e-5, "conv": 3.4e-5}
# Of a call from C++, and of families without a median: what the learned model was fitted with.
OTHER_CALL_SECONDS = 1.93e-5
# Tables that time kernels on the device, without the host's share.
KERNEL_SOURCES = frozenset({"aiconfigurator", "miopen", "xla_perf_table", "cudnn_frontend"})
# How sharp the change from the host's share to the kernel's is.
FLOOR_POWER = 3.0
# Kernels shorter than this many calls did not set the quantiles of ops (`fit.quantiles`); how their rows scatter:
# the 5 % and 95 % quantiles of measured over forecast among those of the operator tables.
SHORT_CALLS = 2.0
SHORT_SPREAD = (0.64, 1.78)


def forecast_ops(frame: pl.DataFrame, cost_model: CostModel, progress: Progress | None = None) -> Predicted:
    """Seconds of every row; rows of unknown devices and families fail with the reason."""
    report = progress or (lambda done, total: None)
    low, mid, high = (np.full(len(frame), np.nan) for _ in range(3))
    frame, errors = typed(frame, sizes=SIZES, seconds=("seconds",), texts=TEXTS)
    families = frame["family"].to_list()
    failures = [FailedRow.because(row_index, str(families[row_index]), error) for row_index, error in errors.items()]
    devices: dict[int, str] = {}
    with_index = frame.with_row_index("_row_index").filter(~pl.col("_row_index").is_in(list(errors)))
    sources = "source" if "source" in frame.columns else pl.lit(None, pl.String).alias("source")
    groups = with_index.with_columns(sources).partition_by("device", "source", as_dict=True)
    done = 0
    for (name, source), rows in groups.items():
        try:
            device = find_device(str(name), None, None if source is None else str(source))
            for chunk in rows.iter_slices(CHUNK):
                row_indices = chunk["_row_index"].to_numpy()
                devices.update(dict.fromkeys(row_indices.tolist(), device.name))
                _fill(chunk, row_indices, device, str(source or ""), cost_model, (low, mid, high), failures.append)
                done += len(chunk)
                report(done, len(frame))
        except EpochcastError as error:
            failures += [FailedRow.because(int(p), f"op on {name}", error) for p in rows["_row_index"]]
    failed = {failure.row_index for failure in failures}
    low[list(failed)] = mid[list(failed)] = high[list(failed)] = np.nan
    labels = {
        "device": [devices.get(i, str(name)) for i, name in enumerate(frame["device"])],
        "family": [str(family) for family in frame["family"]],
    }
    measured = frame["seconds"].fill_null(np.nan).to_numpy()
    return Predicted(measured, low, mid, high, tuple(failures), labels, ~np.isnan(mid))


def _fill(
    rows: pl.DataFrame,
    row_indices: np.ndarray[tuple[int], np.dtype[np.uint32]],
    device: Device,
    source: str,
    cost_model: CostModel,
    ends: tuple[Array, Array, Array],
    add_failure: Callable[[FailedRow], None],
) -> None:
    """Forecast the rows that can be; report the others as failures."""
    errors = [_error(row) for row in rows.select("family", "phase", "dtype", "seconds").iter_rows()]
    for row_index, family, error in zip(row_indices, rows["family"], errors, strict=True):
        if error is not None:
            add_failure(FailedRow.because(int(row_index), str(family), error))
    is_good = np.array([error is None for error in errors])
    if not is_good.any():
        return
    setting = op_setting(source)
    columns = op_columns(rows.filter(pl.Series(is_good)))
    costs = cost_model.costs(columns, device, setting)
    floor = np.array([CALL_SECONDS.get(str(f), OTHER_CALL_SECONDS) for f in rows["family"]])[is_good]
    if setting == op_setting("deepbench"):  # called from C++
        floor[:] = OTHER_CALL_SECONDS
    elif source in KERNEL_SOURCES:
        floor[:] = 0.0
    seconds = (costs.mid**FLOOR_POWER + floor**FLOOR_POWER) ** (1 / FLOOR_POWER)
    below, above = costs.low / costs.mid, costs.high / costs.mid
    if _is_learned(cost_model):  # single ops vary more than steps, in which errors cancel
        alone = load_learned().alone(columns, device, setting)
        below, above = np.fmin(below, alone.low / alone.mid), np.fmax(above, alone.high / alone.mid)
        is_short = costs.mid < SHORT_CALLS * floor
        below = np.where(is_short, np.minimum(below, SHORT_SPREAD[0]), below)
        above = np.where(is_short, np.maximum(above, SHORT_SPREAD[1]), above)
    for end, values in zip(ends, (seconds * below, seconds, seconds * above), strict=True):
        end[row_indices[is_good]] = values
    for row_index in row_indices[is_good][np.isnan(costs.mid)]:
        add_failure(FailedRow(int(row_index), "op", f"{cost_model.name} has no forecast for it"))


def _is_learned(cost_model: CostModel) -> bool:
    """Whether it answers by the learned model, calibrated or not."""
    base = cost_model.base if isinstance(cost_model, Calibrated) else cost_model
    return isinstance(base, Shipped | Learned)


def _error(row: tuple[object, ...]) -> EpochcastError | None:
    """Why a row cannot be forecast; None where it can."""
    family, phase, dtype, seconds = row
    if family not in FAMILIES:
        return BadInput(f"no rule for op family {family!r}; known: {', '.join(FAMILIES)}")
    if phase not in PHASES:
        return BadInput(f"no rule for phase {phase!r}; known: {', '.join(PHASES)}")
    if phase == "backward_both" and family not in BOTH_GRADIENTS:
        return BadInput(f"no rule for all gradients at once of op family {family!r}")
    if dtype not in DTYPES:
        return BadInput(f"no rule for dtype {dtype!r}; known: {', '.join(DTYPES)}")
    if not isinstance(seconds, int | float) or not seconds > 0:
        return InvalidCell("seconds", "above 0", seconds)
    return None


BOTH_GRADIENTS = ("rnn", "attention")
"""Families whose gradients of all operands one row times."""
PHASES = ("forward", "backward_data", "backward_weights", "backward_both")
