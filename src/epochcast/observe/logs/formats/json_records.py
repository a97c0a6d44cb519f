"""JSON logs: a record per line, or documents whose objects are read one by one (`lines`)."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from epochcast.observe.logs.formats.format_rule import Format
from epochcast.observe.logs.formats.number_habits import Counter, Timer
from epochcast.observe.logs.formats.sighting import Sighting
from epochcast.observe.logs.time_stamps import clock_text_seconds

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


def _written_seconds(record: Record, *names: str) -> float | None:
    """The first of these that is a number of seconds, or a clock like `0:10:00`."""
    for name in names:
        value = record.get(name)
        if isinstance(value, str) and _CLOCK.fullmatch(value):
            return clock_text_seconds(value)
        if (seconds := _number(record, name)) is not None:
            return seconds
    return None


_CLOCK = re.compile(r"(?:\d+ days?, ?)?\d+(?::\d\d){1,2}(?:\.\d+)?")


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


@dataclass
class MmcvParser:
    """`*.log.json` of mmdetection 2 and its kin: the configuration is in the first line.

    `iter` counts within the epoch, or through the run where the runner is one of iterations.
    """

    flavour: str = "mmcv_json"
    counter: Counter = field(default_factory=Counter)

    def sight(self, line: str) -> Sighting | None:
        """What one record says."""
        record = _record(line)
        if record is None:
            return None
        if isinstance(text := record.get("config") or record.get("env_info"), str):
            return _mmcv_config(text)
        iteration, epoch = _number(record, "iter"), _number(record, "epoch")
        if iteration is None or epoch is None:
            return None
        if record.get("mode") == "val":
            return Sighting("validation")
        sighting = Sighting(
            step_seconds=_number(record, "time"),
            data_seconds=_number(record, "data_time"),
            loss=_number(record, "loss"),
        )
        self.counter.first_epoch = 1
        self.counter.place(sighting, epoch, iteration, None, is_batch=True)
        if sighting.batch is not None:
            sighting.batches = None  # epochs are as long as the course has seen them
        return sighting


def _mmcv_config(text: str) -> Sighting | None:
    for name in ("total_epochs", "max_epochs"):
        _, separator, behind = text.partition(name)
        digits = behind.lstrip(" ='\":")[:6]
        count = "".join(c for c in digits[: next((i for i, c in enumerate(digits) if not c.isdigit()), len(digits))])
        if separator and count:
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


def detectron1(record: Record) -> Sighting | None:
    """`json_stats` lines of Detectron: iterations from 0, seconds of a step."""
    iteration, seconds = _number(record, "iter"), _number(record, "time")
    if iteration is None or seconds is None or "eta" not in record:
        return None
    return Sighting(step=iteration + 1, step_seconds=seconds, loss=_number(record, "loss"))


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


STEPS = (
    "global_step",
    "_step",
    "train/global_step",
    "num_updates",
    "iteration",
    "iter",
    "step",
    "num_steps",
    "update",
    "batch",
    "trainer/global_step",
    "current_steps",
)
EPOCHS = ("epoch", "train/epoch", "Epoch")
ELAPSED = (
    "elapsed",
    "elapsed_seconds",
    "elapsed_time",
    "elapsedtime",
    "_runtime",
    "wall_seconds",
    "train_time",
    "wall",
)
STEP_TIMES = ("step_time", "step_seconds", "time_per_step", "iter_time", "sec_per_step", "batch_time", "iteration_time")


@dataclass
class JsonLinesParser:
    """Any record with a step or an epoch, by the names that people use; what they mean is seen from how they go on."""

    flavour: str = "jsonl"
    counter: Counter = field(default_factory=Counter)
    timer: Timer = field(default_factory=Timer)
    first_done: float | None = None
    counts_steps: bool = False

    def sight(self, line: str) -> Sighting | None:
        """What the record in the line says."""
        record = _record(line)
        if record is None:
            return None
        record = _flat(record)
        step, epoch = _number(record, *STEPS), _number(record, *EPOCHS)
        sighting = Sighting(
            total=_number(record, "total_steps", "max_steps", "total_iters", "num_train_steps", "max_iters"),
            epochs=_number(
                record, "epochs", "total_epochs", "max_epochs", "num_epochs", "num_train_epochs", "max_epoch"
            ),
            stamp_seconds=_unix(record),
            loss=_number(record, *LOSSES),
        )
        if step is None and epoch is None:
            sighting.phase = "header"
            return None if sighting.total is None and sighting.epochs is None else sighting
        if _is_validation(record) or (step is None and self.counts_steps):
            return Sighting("validation", stamp_seconds=sighting.stamp_seconds)
        self._place(sighting, step, epoch)
        self._time(sighting, record)
        return sighting

    def _place(self, sighting: Sighting, step: float | None, epoch: float | None) -> None:
        if step is not None:
            self.counts_steps = True
            total = sighting.total
            whole_epoch = None if epoch is None or epoch % 1 else epoch
            self.counter.place(sighting, whole_epoch, step, None, is_batch=False)
            sighting.total = total
            return
        assert epoch is not None
        if self.first_done is None or epoch < 1:
            self.first_done = 1.0 if epoch % 1 else min(epoch, 1.0)
        sighting.epochs_done = epoch + 1 - self.first_done

    def _time(self, sighting: Sighting, record: Record) -> None:
        sighting.elapsed_seconds = _written_seconds(record, *ELAPSED)
        sighting.step_seconds = _number(record, *STEP_TIMES)
        sighting.data_seconds = _number(record, "data_time")
        sighting.remaining_seconds = _written_seconds(record, "eta_seconds", "remaining_time", "eta")
        seconds = _number(record, "time", "duration", "time_s")
        if seconds is None or seconds >= 1e9 or sighting.step_seconds is not None:
            return
        if sighting.epochs_done is None:
            sighting.elapsed_seconds = None
            self.timer.place(sighting, seconds)
        elif sighting.elapsed_seconds is None:
            sighting.interval_seconds = seconds


def _flat(record: Record) -> Record:
    """Numbers one level down count as well: `{"step": 3, "data": {"loss": 0.5}}`; a list of step is (epoch, step)."""
    flat = dict(record)
    for name in ("data", "metrics", "train", "metadata"):
        if isinstance(inner := record.get(name), dict):
            flat.update({key: value for key, value in inner.items() if key not in flat})
    if isinstance(step := record.get("step"), list) and len(step) > 1 and all(isinstance(part, int) for part in step):
        flat["epoch"], flat["step"] = step[0], step[1] + 1
    return flat


def _is_validation(record: Record) -> bool:
    if (
        str(record.get("mode", record.get("split", record.get("phase", ""))))
        .lower()
        .startswith(("val", "eval", "test"))
    ):
        return True
    if any(name in record for name in LOSSES):
        return False
    return any(name.lower().startswith(("val", "eval", "test", "valid")) for name in record)


def _unix(record: Record) -> float | None:
    value = _number(record, "timestamp", "_timestamp", "time", "wall_time", "ts", "created")
    if value is None or value < 1e9:
        return None
    return value / 1e3 if value > 1e11 else value


def _format(name: str, framework: str, read: Reading, *needles: str, sureness: float = 1.0) -> Format:
    return Format(name, framework, needles, lambda: RecordParser(name, read), sureness)


FORMATS: tuple[Format, ...] = (
    _format("detectron2_json", "Detectron2", detectron2, '"eta_seconds"', '"total_loss"'),
    Format("mmcv_json", "mmdetection 2 and its kin", ('"mode": "', '"env_info"'), MmcvParser),
    _format("mmengine_json", "mmengine", mmengine, '"data_time"', sureness=0.8),
    _format("dllogger_json", "NVIDIA DLLogger", dllogger, '"elapsedtime"', '"datetime"'),
    _format("torch7_json_stats", "Torch7", torch7_stats, "json_stats:"),
    _format("detectron1", "Detectron", detectron1, "json_stats:"),
    Format(
        "trainer_state",
        "Hugging Face Trainer",
        ('"step"', '"max_steps"'),
        lambda: TrainerStateParser("trainer_state", trainer_state),
        sureness=0.7,
    ),
    _format("chainer_json", "Chainer", chainer, '"elapsed_time"'),
    Format(
        "jsonl",
        "JSON lines",
        ('"step"', 'global_step"', '"epoch"', '"iter', '"_step"', '"num_updates"', '"max_', '"Epoch"'),
        JsonLinesParser,
        sureness=0.3,
    ),
)
