"""How raw loops report, each as people really print."""

import json
import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tqdm import tqdm


@dataclass
class Printer:
    """One way to report; `seconds` since the last step and since the start of the epoch come with each report."""

    total: int
    steps: int
    epochs: int
    every: int
    meters: dict[str, tuple[float, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """What a way to report sets up."""

    def epoch(self, epoch: int, done: int) -> None:
        self.meters = {}

    def average(self, name: str, value: float) -> float:
        before, count = self.meters.get(name, (0.0, 0))
        self.meters[name] = before + value, count + 1
        return (before + value) / (count + 1)

    def report(self, epoch: int, batch: int, loss: float, seconds: float, data_seconds: float) -> None:
        raise NotImplementedError

    def validated(self, epoch: int, loss: float) -> None:
        print(f"validation loss {loss:.4f}", flush=True)


class ImageNet(Printer):
    """The example of PyTorch."""

    def report(self, epoch: int, batch: int, loss: float, seconds: float, data_seconds: float) -> None:
        told = [self.average(*one) for one in (("Time", seconds), ("Data", data_seconds), ("Loss", loss))]
        if batch % self.every == 0:
            print(
                f"Epoch: [{epoch}][{batch + 1:4d}/{self.steps}]\tTime {seconds:6.3f} ({told[0]:6.3f})\t"
                f"Data {data_seconds:6.3f} ({told[1]:6.3f})\tLoss {loss:.4e} ({told[2]:.4e})",
                flush=True,
            )

    def validated(self, epoch: int, loss: float) -> None:
        print(f" * Acc@1 {10 + loss:.3f} Acc@5 {50 + loss:.3f}", flush=True)


class NanoGpt(Printer):
    def report(self, epoch: int, batch: int, loss: float, seconds: float, data_seconds: float) -> None:
        step = epoch * self.steps + batch
        if step % self.every == 0:
            print(f"iter {step}: loss {loss:.4f}, time {seconds * 1e3:.2f}ms, mfu 1.00%", flush=True)

    def validated(self, epoch: int, loss: float) -> None:
        print(f"step {epoch}: train loss {loss:.4f}, val loss {loss:.4f}", flush=True)


class Logging(Printer):
    def __post_init__(self) -> None:
        form = "%(asctime)s %(levelname)s %(message)s"
        logging.basicConfig(stream=sys.stdout, level=logging.INFO, format=form, force=True)

    def report(self, epoch: int, batch: int, loss: float, seconds: float, data_seconds: float) -> None:
        if batch % self.every == self.every - 1:
            logging.info("Epoch %d/%d, step %d/%d, loss %.4f", epoch + 1, self.epochs, batch + 1, self.steps, loss)

    def validated(self, epoch: int, loss: float) -> None:
        logging.info("Validation after epoch %d: loss %.4f", epoch + 1, loss)


class Tqdm(Printer):
    bar: Any = None

    def epoch(self, epoch: int, done: int) -> None:
        if self.bar is not None:
            self.bar.close()
        self.bar = tqdm(total=self.steps, initial=done, desc=f"Epoch {epoch + 1}/{self.epochs}", file=sys.stdout)

    def report(self, epoch: int, batch: int, loss: float, seconds: float, data_seconds: float) -> None:
        self.bar.update(1)
        if batch % self.every == 0:
            self.bar.set_postfix(loss=f"{loss:.3f}")


class JsonLines(Printer):
    def report(self, epoch: int, batch: int, loss: float, seconds: float, data_seconds: float) -> None:
        step = epoch * self.steps + batch + 1
        if step % self.every == 0:
            print(
                json.dumps({"step": step, "max_steps": self.total, "loss": loss, "timestamp": time.time()}), flush=True
            )

    def validated(self, epoch: int, loss: float) -> None:
        print(json.dumps({"epoch": epoch, "val_loss": loss, "timestamp": time.time()}), flush=True)


PRINTERS: dict[str, Callable[..., Printer]] = {
    "imagenet": ImageNet,
    "nanogpt": NanoGpt,
    "logging": Logging,
    "tqdm": Tqdm,
    "jsonl": JsonLines,
}
