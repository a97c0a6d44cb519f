"""Small networks and made-up data, on one thread; every network maps a batch to a loss."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCH = 16
SLOW_SECONDS = 0.4
PAUSE_SECONDS = 8.0
STALL_FACTOR = 1.5


class Images(nn.Module):
    shape, classes = (3, 32, 32), 10

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after in ((3, 32), (32, 64), (64, 64)):
            layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
        self.body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))

    def forward(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(self.body(inputs), labels)


class Flat(nn.Module):
    shape, classes = (784,), 10

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
        )

    def forward(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(self.body(inputs), labels)


class Language(nn.Module):
    """Next words by a small transformer, or by an LSTM."""

    classes = 200

    def __init__(self, is_recurrent: bool) -> None:
        super().__init__()
        self.shape = (48,) if is_recurrent else (64,)
        self.words = nn.Embedding(self.classes, 128)
        self.is_recurrent = is_recurrent
        self.body: Any = (
            nn.LSTM(128, 128, batch_first=True)
            if is_recurrent
            else nn.TransformerEncoder(nn.TransformerEncoderLayer(128, 4, 256, 0.0, batch_first=True), 1)
        )
        self.head = nn.Linear(128, self.classes)

    def forward(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        hidden = self.words(inputs)
        hidden = self.body(hidden)[0] if self.is_recurrent else self.body(hidden)
        return nn.functional.cross_entropy(self.head(hidden[:, -1]), labels)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "cnn": Images,
    "mlp": Flat,
    "lstm": lambda: Language(True),
    "gpt": lambda: Language(False),
}


class Samples(Dataset[dict[str, torch.Tensor]]):
    """Random samples; from `stall_from` on each takes `stall_seconds` to fetch, as a slow disk would."""

    def __init__(self, net: Any, count: int, stall_from: int = 0, stall_seconds: float = 0.0) -> None:
        self.net, self.count, self.stall_from, self.stall_seconds = net, count, stall_from, stall_seconds
        self.fetched = 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        self.fetched += 1
        if self.stall_seconds and self.fetched > self.stall_from:
            time.sleep(self.stall_seconds)
        is_text = isinstance(self.net, Language)
        inputs = torch.randint(0, 200, self.net.shape) if is_text else torch.randn(self.net.shape)
        return {"inputs": inputs, "labels": torch.randint(0, self.net.classes, ())}


def loader(samples: Samples) -> DataLoader[dict[str, torch.Tensor]]:
    return DataLoader(samples, batch_size=BATCH)


def step_seconds(net: nn.Module, optimizer: torch.optim.Optimizer) -> float:
    """A step with its data, timed before the training: the median of ten."""
    times = []
    batches = iter(loader(Samples(net, 14 * BATCH)))
    for _ in range(14):
        begin = time.perf_counter()
        train_step(net, optimizer, next(batches))
        times.append(time.perf_counter() - begin)
    return sorted(times[4:])[5]


def train_step(net: nn.Module, optimizer: torch.optim.Optimizer, batch: dict[str, torch.Tensor]) -> float:
    optimizer.zero_grad()
    loss = net(**batch)
    loss.backward()
    optimizer.step()
    return float(loss.detach())
