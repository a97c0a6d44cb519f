"""JSON logs: a record per line, or documents whose objects are read one by one (`lines`)."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from epochcast.tracking.formats.rule import Format
from epochcast.tracking.formats.sighting import Sighting

Record = Mapping[str, Any]
Reading = Callable[[Record], Sighting | None]

LOSSES = ("loss", "total_loss", "train_loss", "train/loss", "Train/Loss", "training_loss", "loss/train")


@dataclass
class RecordParser:
    """Reads lines that hold one JSON object, by a function from objects to sightings."""

    flavour: str
    read: Reading

    def sight(self, line: str) -> Sighting | None:
        """What the object in the line says."""
        record = _record(line)
        return None if record is None else self.read(record)


def _record(line: str) -> Record | None:
    start = line.find("{")
    text = line[start:] if start >= 0 else "{" + line.strip().strip(",") + "}"
    try:
        value = json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _number(record: Record, *names: str) -> float | None:
    """The first of these that is there and is a number, also one in quotes."""
    for name in names:
        value = record.get(name)
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                continue
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def detectron2(record: Record) -> Sighting | None:
    """`metrics.json` of Detectron2: iterations counted from 0, seconds of a step as a mean."""
    iteration = _number(record, "iteration")
    if iteration is None:
        return None
    if _number(record, "time", "total_loss") is None:
        return Sighting("validation")
    return Sighting(
        step=iteration + 1,
        step_seconds=_number(record, "time"),
        data_seconds=_number(record, "data_time"),
        remaining_seconds=_number(record, "eta_seconds"),
        loss=_number(record, "total_loss"),
    )


def mmcv(record: Record) -> Sighting | None:
    """`*.log.json` of mmdetection 2: `iter` counts within the epoch; the configuration is in the first line."""
    if isinstance(text := record.get("config") or record.get("env_info"), str):
        return _mmcv_config(str(record.get("config") or text))
    iteration, epoch = _number(record, "iter"), _number(record, "epoch")
    if iteration is None or epoch is None:
        return None
    if record.get("mode") == "val":
        return Sighting("validation")
    return Sighting(
        epoch=int(epoch) - 1,
        batch=iteration,
        step_seconds=_number(record, "time"),
        data_seconds=_number(record, "data_time"),
        loss=_number(record, "loss"),
    )


def _mmcv_config(text: str) -> Sighting | None:
    for name in ("total_epochs", "max_epochs"):
        _, found, behind = text.partition(name)
        digits = behind.lstrip(" ='\":")[:6]
        count = "".join(c for c in digits[: next((i for i, c in enumerate(digits) if not c.isdigit()), len(digits))])
        if found and count:
            return Sighting("header", epochs=float(count))
    return None


def mmengine(record: Record) -> Sighting | None:
    """`vis_data/*.json` of mmengine: training records have a learning rate, others are validation."""
    if "mode" in record or "iteration" in record or "step" not in record:
        return None
    if record.get("lr") is None and record.get("base_lr") is None:
        return Sighting("validation")
    return Sighting(
        step=_number(record, "iter", "step"),
        step_seconds=_number(record, "time"),
        data_seconds=_number(record, "data_time"),
        loss=_number(record, "loss"),
    )


def dllogger(record: Record) -> Sighting | None:
    """NVIDIA's DLLogger: `step` is (epoch, iteration, …), or a word for what is no step."""
    step, data = record.get("step"), record.get("data")
    if not isinstance(data, dict):
        return None
    if step == "PARAMETER":
        steps = _number(data, "max_steps", "num_train_steps", "train_steps")
        epochs = _number(data, "epochs", "num_epochs", "num_train_epochs")
        return None if steps is None and epochs is None else Sighting("header", total=steps, epochs=epochs)
    stamp = _number(record, "timestamp")
    if not isinstance(step, list) or len(step) < 2:
        return None
    if any(name.startswith(("val", "eval", "test", "final")) for name in data):
        return Sighting("validation", stamp_seconds=stamp)
    loss = next((_number(data, name) for name in data if "loss" in name), None)
    return Sighting(epoch=int(step[0]), batch=float(step[1]) + 1, stamp_seconds=stamp, loss=loss)


def torch7_stats(record: Record) -> Sighting | None:
    """`json_stats` lines of wide residual networks: one per epoch, with the seconds of training and test."""
    epoch, train = _number(record, "epoch"), _number(record, "train_time")
    if epoch is None or train is None:
        return None
    return Sighting(
        epochs_done=epoch,
        epochs=_number(record, "max_epoch"),
        interval_seconds=train + (_number(record, "test_time") or 0.0),
        loss=_number(record, "loss", "train_loss"),
    )


def trainer_state(record: Record) -> Sighting | None:
    """`trainer_state.json` of Hugging Face: no clock but the run's seconds at its end."""
    step = _number(record, "step")
    if step is None:
        return None
    if (runtime := _number(record, "train_runtime")) is not None:
        return Sighting("end", step=step, elapsed_seconds=runtime)
    if _number(record, "loss") is None:
        return Sighting("validation")
    return Sighting(step=step, loss=_number(record, "loss"))


@dataclass
class TrainerStateParser(RecordParser):
    """Trainer states announce the total behind the history, in text between two objects that is none itself."""

    def sight(self, line: str) -> Sighting | None:
        """What an object of the history says, or the total."""
        if '"max_steps"' in line and (match := _MAX_STEPS.search(line)):
            return Sighting("checkpoint", total=float(match[1]))
        return None if "{" in line else RecordParser.sight(self, line)


_MAX_STEPS = re.compile(r'"max_steps": ?([1-9]\d*)')


def chainer(record: Record) -> Sighting | None:
    """The `log` file of Chainer's LogReport."""
    step, elapsed = _number(record, "iteration"), _number(record, "elapsed_time")
    if step is None or elapsed is None:
        return None
    return Sighting(step=step, elapsed_seconds=elapsed, loss=_number(record, "main/loss", "loss"))


def json_lines(record: Record) -> Sighting | None:
    """Any record with a step or an epoch, by the names that people use."""
    step = _number(
        record, "step", "global_step", "_step", "iteration", "iter", "train/global_step", "num_steps", "update"
    )
    epoch = _number(record, "epoch", "train/epoch")
    if step is None and epoch is None:
        return None
    if not any(name in record for name in LOSSES) and any(
        name.lower().startswith(("val", "eval", "test")) for name in record
    ):
        return Sighting("validation", stamp_seconds=_unix(record))
    return Sighting(
        step=step,
        epochs_done=epoch if step is None else None,
        total=_number(record, "total_steps", "max_steps", "total_iters", "total"),
        epochs=_number(record, "epochs", "total_epochs", "max_epochs", "num_epochs"),
        stamp_seconds=_unix(record),
        elapsed_seconds=_number(
            record, "elapsed", "elapsed_seconds", "elapsed_time", "_runtime", "wall_seconds", "train_time"
        ),
        step_seconds=_number(record, "step_time", "step_seconds", "time_per_step", "iter_time", "sec_per_step"),
        remaining_seconds=_number(record, "eta_seconds"),
        loss=_number(record, *LOSSES),
    )


def _unix(record: Record) -> float | None:
    value = _number(record, "timestamp", "_timestamp", "time", "wall_time", "ts", "created")
    if value is None or value < 1e9:
        return None
    return value / 1e3 if value > 1e11 else value


def _format(name: str, framework: str, read: Reading, *needles: str, sureness: float = 1.0) -> Format:
    return Format(name, framework, needles, lambda: RecordParser(name, read), sureness)


FORMATS: tuple[Format, ...] = (
    _format("detectron2_json", "Detectron2", detectron2, '"eta_seconds"', '"total_loss"'),
    _format("mmcv_json", "mmdetection 2 and its kin", mmcv, '"mode": "', '"env_info"'),
    _format("mmengine_json", "mmengine", mmengine, '"data_time"', sureness=0.8),
    _format("dllogger_json", "NVIDIA DLLogger", dllogger, '"elapsedtime"', '"datetime"'),
    _format("torch7_json_stats", "Torch7", torch7_stats, "json_stats:"),
    Format(
        "trainer_state",
        "Hugging Face Trainer",
        ('"step"', '"max_steps"'),
        lambda: TrainerStateParser("trainer_state", trainer_state),
        sureness=0.7,
    ),
    _format("chainer_json", "Chainer", chainer, '"elapsed_time"'),
    _format("jsonl", "JSON lines", json_lines, '"step"', '"global_step"', '"epoch"', '"iter', '"_step"', sureness=0.3),
)
