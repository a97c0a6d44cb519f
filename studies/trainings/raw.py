"""A raw PyTorch loop."""

import time
from pathlib import Path
from typing import Any

import torch

import epochcast as ec
from studies.trainings.cases import Training
from studies.trainings.happenings import Happenings
from studies.trainings.models import BATCH, MODELS, STALL_FACTOR, Language, Samples, loader, step_seconds, train_step
from studies.trainings.printers import PRINTERS


def grown(net: Any, fraction: float) -> tuple[int, ...]:
    """Longer sequences and larger images in four phases, from half to twice."""
    scale = 0.5 * 2 ** (2 * min(3, int(4 * fraction)) / 3)
    if isinstance(net, Language):
        return (int(net.shape[0] * scale),)
    return (3, int(32 * scale), int(32 * scale))


def run(training: Training, folder: Path, steps_given: int | None) -> int:
    """Train; gives the steps of an epoch, which a second attempt takes over."""
    torch.manual_seed(0)
    net = MODELS[training.model]()
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    usual_seconds = step_seconds(net, optimizer) if steps_given is None else 0.02
    steps = steps_given or max(20, int(training.seconds / training.epochs / usual_seconds))
    (folder / "steps").write_text(str(steps), encoding="utf-8")
    total = steps * training.epochs
    saved = folder / "checkpoint.pt"
    done = 0
    if saved.exists():
        state = torch.load(saved)
        net.load_state_dict(state["net"])
        done = state["step"]
    step_net: Any = torch.compile(net, backend="aot_eager") if training.compiles else net
    printer = PRINTERS[training.printer](total, steps, training.epochs, training.report_every)
    happenings = Happenings(training, total, folder)
    tracked = ec.track(job=training.name, total=total, epochs=training.epochs, start=done, to=folder / "callback.jsonl")
    with tracked:
        loop = _Loop(training, net, step_net, optimizer, printer, happenings, tracked, steps, total, usual_seconds)
        loop.train(done, saved)
    happenings.over()
    return steps


class _Loop:
    def __init__(self, *parts: Any) -> None:
        (
            self.training,
            self.net,
            self.step_net,
            self.optimizer,
            self.printer,
            self.happenings,
            self.tracked,
            self.steps,
            self.total,
            self.usual_seconds,
        ) = parts
        stall = STALL_FACTOR * self.usual_seconds / BATCH if self.training.stall_at else 0.0
        samples = self.total * BATCH
        self.samples = Samples(self.net, samples, int(self.training.stall_at * samples), stall)

    def train(self, done: int, saved: Path) -> None:
        batches = iter(loader(self.samples))
        for epoch in range(done // self.steps, self.training.epochs):
            self.printer.epoch(epoch, done - epoch * self.steps)
            for batch in range(done - epoch * self.steps, self.steps):
                self.one(batches, epoch, batch)
                done += 1
                if self.training.checkpoint_every and done % self.training.checkpoint_every == 0:
                    with self.tracked.pause("checkpoint"):
                        torch.save({"net": self.net.state_dict(), "step": done}, saved)
                if self.training.validation_every > 1 and done % self.training.validation_every == 0:
                    self.validate(done)
                if not self.happenings.after(done):
                    return
            self.tracked.epoch()
            if self.training.validation_every == 1:
                self.validate(epoch)

    def one(self, batches: Any, epoch: int, batch: int) -> None:
        begin = time.perf_counter()
        if self.training.grows:
            self.samples.net.shape = self.shape(epoch * self.steps + batch)
        inputs = next(batches)
        got = time.perf_counter()
        loss = train_step(self.step_net, self.optimizer, inputs)
        self.tracked.step(loss=loss, data_seconds=got - begin)
        self.printer.report(epoch, batch, loss, time.perf_counter() - begin, got - begin)

    def shape(self, step: int) -> tuple[int, ...]:
        if not hasattr(self, "first_net"):
            self.first_net = MODELS[self.training.model]()
        return grown(self.first_net, step / self.total)

    def validate(self, number: int) -> None:
        with self.tracked.pause("validation"), torch.no_grad():
            count = self.training.validation_steps
            losses = [float(self.net(**batch)) for batch in loader(Samples(self.net, count * BATCH))]
        self.printer.validated(number, sum(losses) / len(losses))
