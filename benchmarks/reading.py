"""Logs read against a bare count of the lines of the same bytes, format by format, a report in every line.

    python -m benchmarks.reading        generated logs, and the real ones where they are (EPOCHCAST_LOGS)

Generated logs are one long run each. Real logs are short: each is repeated until it is long, so that it starts anew
with every copy, thousands of times where it is of a kilobyte. Of a log that has so much to tell parts are passed over
(`observe/logs/line_allowance.py`); how much is printed.
"""

import gzip
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from epochcast.observe.logs.log_reader import LogReader

BLOCK_BYTES = 1 << 20
MEGABYTES, REAL_MEGABYTES = 32, 12
LEAST_SPEED = 50.0
BATCHES = 1487


def _clock(n: int) -> str:
    return f"{n // 3600 % 24:02d}:{n // 60 % 60:02d}:{n % 60:02d}"


def _dated(n: int) -> str:
    return f"2031-05-{1 + n // 86400 % 28:02d} {_clock(n)},000 - INFO - "


def _bar(done: int, total: int) -> str:
    drawn = "█" * (20 * done // total)
    return f"{100 * done // total:3d}%|{drawn:20}| {done}/{total} [{_clock(done)[3:]}<09:59,  1.57it/s"


def _caffe(n: int) -> str:
    return f"I0727 {_clock(n)}.500051 1934443264 solver.cpp:228] Iteration {n}, loss = 1.16216\n"


def _imagenet(n: int) -> str:
    batch = n % BATCHES
    return (
        f"Epoch: [{n // BATCHES}][{batch:4d}/{BATCHES}]\tTime  0.5 ( 0.6)\tData  0.0 ( 0.1)\tLoss 6.9e+00 (7.0e+00)"
        "\tAcc@1   0.10 (  0.12)\n"
    )


def _openmmlab(n: int) -> str:
    return _dated(n) + f"Iter [{n}/9000000]\tlr: 2e-02, eta: 8:03:50, time: 0.579, data_time: 0.134, loss: 0.7\n"


def _llm_c(n: int) -> str:
    return f"step {n}/9000000 | loss 3.123 (+0.1z)| norm 0.123 (+0.1z)| lr 5.1e-04 | 3674.20 ms | 36.7% bf16 MFU |\n"


def _megatron(n: int) -> str:
    return (
        f" [2031-05-01 {_clock(n)}] iteration {n:8d}/ 9000000 | consumed samples: {n * 8:12d} | "
        "elapsed time per iteration (ms): 1000.0 | global batch size:     8 | lm loss: 3.0E+00\n"
    )


def _own(n: int) -> str:
    return _dated(n) + f"Epoch: [{n // BATCHES}/9000] Iter [{n % BATCHES}/{BATCHES}] || lr: 0.01 || Loss: 2.3\n"


def _tf1(n: int) -> str:
    return f"INFO:tensorflow:loss = 68.{n % 1000:03d}, step = {100 * n + 1} (1.702 sec)\n"


def _json(n: int) -> str:
    return f'{{"step": {n}, "loss": 2.3456, "learning_rate": 0.0001, "timestamp": {1_900_000_000 + n}.5}}\n'


def _table(n: int) -> str:
    return "step,loss,time\n" if n == 0 else f"{n},2.{n % 1000:03d},{n}.25\n"


def _keras_2(n: int) -> str:
    done = n % BATCHES + 1
    drawn = "=" * (29 * done // BATCHES)
    if done == BATCHES:
        bar = f"{done}/{BATCHES} [{'=' * 30}] - 743s 500ms/step - loss: 0.0712 - acc: 0.91\n"
        return bar + f"Epoch {n // BATCHES + 2}/9000\n"
    head = "Epoch 1/9000\n" if n == 0 else ""
    rest = (BATCHES - done) // 2
    return head + f"{done:4d}/{BATCHES} [{drawn}>{'.' * (29 - len(drawn))}] - ETA: {rest}s - loss: 0.0712 - acc: 0.91\r"


def _keras_3(n: int) -> str:
    done = n % BATCHES + 1
    drawn = 20 * done // BATCHES
    head = f"Epoch {n // BATCHES + 1}/9000\n" if done == 1 else ""
    took = f"{(BATCHES - done) // 20}s 50ms/step" if done < BATCHES else "74s 50ms/step"
    end = "\r" if done < BATCHES else "\n"
    bar = f"\x1b[32m{'━' * drawn}\x1b[0m\x1b[37m{'━' * (20 - drawn)}\x1b[0m"
    return head + f"\x1b[1m{done}/{BATCHES}\x1b[0m {bar} \x1b[1m{took}\x1b[0m - accuracy: 0.78 - loss: 0.8412{end}"


def _yolo(n: int) -> str:
    done = n % BATCHES + 1
    head = "\n     Epoch   gpu_mem       box       obj       cls    labels  img_size\n" if done == 1 else ""
    return (
        head
        + f"\r     {n // BATCHES}/2999     10.4G   0.0601   0.0402   0.0201       120       640: {_bar(done, BATCHES)}]"
    )


def _lightning(n: int) -> str:
    return f"Epoch {n // BATCHES}: {_bar(n % BATCHES + 1, BATCHES)}, v_num=3, train_loss=0.473]\r"


def _huggingface(n: int) -> str:
    report = f"\n{{'loss': 2.3456, 'grad_norm': 1.0, 'learning_rate': 5e-05, 'epoch': {n / BATCHES:.2f}}}\n"
    bar = f"{n // 90000:3d}%|{'█' * (n // 450000):20}| {n}/9000000 [{n // 3600}:{_clock(n)[3:]}<99:59:59,  1.00it/s]"
    return bar + (report if n % 10 == 0 else "\r")


def _mllog(n: int) -> str:
    metadata = f'{{"file": "a.py", "lineno": 12, "samples_count": {n * 64}}}'
    return (
        f':::MLLOG {{"namespace": "", "time_ms": {1_900_000_000_000 + n * 1000}, "event_type": "POINT_IN_TIME", '
        f'"key": "train_loss", "value": 2.3, "metadata": {metadata}}}\n'
    )


def _chatty(n: int) -> str:
    return _openmmlab(n) if n % 20 == 0 else "WARNING: a library says the same thing again and again, on and on\n"


def _keras_epochs(n: int) -> str:
    return f"Epoch {n + 1}/9000000\n{7 + n % 2}s - loss: 1.2039 - acc: 0.6889 - val_loss: 1.1929 - val_acc: 0.7014\n"


def _ultralytics(n: int) -> str:
    head = "epoch,time,train/box_loss,train/cls_loss,metrics/mAP50(B),val/box_loss,lr/pg0\n" if n == 0 else ""
    return head + f"{n + 1},{100 * (n + 1)}.25,0.99{n % 1000:03d},0.60848,0.95057,0.96392,0.00042\n"


def _short_epochs(n: int) -> str:
    """Epochs of seven lines, as of MXNet on a small data set."""
    epoch, line = divmod(n, 9)
    if line < 7:
        return (
            f"INFO:root:Epoch[{epoch}] Batch [{50 * (line + 1)}]\tSpeed: 716.31 samples/sec\tTrain-accuracy=0.795625\n"
        )
    if line == 7:
        return f"INFO:root:Epoch[{epoch}] Time cost=71.{n % 1000:03d}\n"
    return f"INFO:root:Epoch[{epoch}] Validation-accuracy=0.863232\n"


def _restarts(n: int) -> str:
    """A job that falls over every twenty lines."""
    head = "Namespace(epochs=90, lr=0.1)\n=> loading checkpoint\n" if n % 20 == 0 else ""
    return head + _openmmlab(n % 20 + n // 20).replace("2031-05-01 00:", f"2031-05-01 {n // 60 % 24:02d}:")


LOGS: dict[str, Callable[[int], str]] = {
    "Caffe": _caffe,
    "PyTorch ImageNet example": _imagenet,
    "OpenMMLab": _openmmlab,
    "llm.c": _llm_c,
    "Megatron-LM": _megatron,
    "TensorFlow 1": _tf1,
    "Keras 2 bars": _keras_2,
    "Keras 3 bars, coloured": _keras_3,
    "YOLO bars": _yolo,
    "Lightning bars": _lightning,
    "Hugging Face bars and reports": _huggingface,
    "MLPerf events": _mllog,
    "JSON lines": _json,
    "a table (CSV)": _table,
    "words of an own loop": _own,
    "a report in one line of twenty": _chatty,
    "an epoch in a line (Keras)": _keras_epochs,
    "a table of epochs (YOLO)": _ultralytics,
    "epochs of a few lines (MXNet)": _short_epochs,
    "a restart every twenty lines": _restarts,
}


def speeds() -> Iterator[tuple[str, float, float]]:
    """(log, megabytes per second of processor time, how many times the time of counting lines)."""
    for name, line in LOGS.items():
        reader, read, count, n, size = LogReader(), 0.0, 0.0, 0, 0
        for _ in range(MEGABYTES):
            more = BLOCK_BYTES // len(line(n + 1).encode())
            block = "".join(line(n + place) for place in range(more)).encode()
            n += more
            size += len(block)
            start = time.process_time()
            reader.feed(block)
            middle = time.process_time()
            block.count(b"\n")
            block.count(b"\r")
            count += time.process_time() - middle
            read += middle - start
        yield name, size / 1e6 / read, read / count


def real_logs() -> list[Path]:
    """The logs of the track study, where they are: in EPOCHCAST_LOGS, or beside the data."""
    data = os.environ.get("EPOCHCAST_DATA")
    folder = os.environ.get("EPOCHCAST_LOGS") or (str(Path(data).parent / "logs") if data else "")
    return sorted(Path(folder).glob("L*.gz")) if folder else []


def real_speeds() -> Iterator[tuple[str, float, float]]:
    """(log, megabytes per second of processor time, share of it that was passed over), each log repeated."""
    for path in real_logs():
        with gzip.open(path) as file:
            once = file.read()
        data = once * max(1, (REAL_MEGABYTES << 20) // len(once))
        reader, start = LogReader(), time.process_time()
        for at in range(0, len(data), BLOCK_BYTES):
            reader.feed(data[at : at + BLOCK_BYTES])
        yield path.name, len(data) / 1e6 / (time.process_time() - start), reader.passed_bytes / len(data)


def main() -> int:
    """Print the slowest, and how many are below the limit."""
    missed = 0
    for name, logs in (("generated", [*speeds()]), ("real", [*real_speeds()])):
        if not logs:
            continue
        slow = sum(speed < LEAST_SPEED for _, speed, _ in logs)
        missed += slow
        logs.sort(key=lambda log: log[1])
        print(f"{len(logs)} {name} logs: {slow} below {LEAST_SPEED:.0f} MB/s, half below {logs[len(logs) // 2][1]:.0f}")
        for log, speed, more in logs[:10]:
            beside = f"{more:.0f} times counting lines" if name == "generated" else f"{more:.0%} passed over"
            print(f"  {speed:6.1f} MB/s  {log}  ({beside})")
        if name == "real":
            print(f"  parts were passed over in {sum(more > 0 for _, _, more in logs)} of them")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
