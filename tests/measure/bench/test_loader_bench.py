import time
from pathlib import Path

import numpy as np
import pytest

from epochcast.errors import BadInput
from epochcast.measure.bench.idle_cpus import idle_cpus, usable_cpus
from epochcast.measure.bench.jpegs import JpegFolder, write_jpegs
from epochcast.measure.bench.loader_bench import measure_loader

torch = pytest.importorskip("torch")


class Sleeping(torch.utils.data.Dataset):  # type: ignore[misc, name-defined]
    def __len__(self) -> int:
        return 200

    def __getitem__(self, place: int) -> object:
        time.sleep(0.01)
        return torch.zeros(100)


def test_sleeping_is_waiting_and_not_work() -> None:
    measured = measure_loader(torch.utils.data.DataLoader(Sleeping(), batch_size=4), budget_seconds=0.5)
    assert measured.wait_seconds >= 0.01
    assert measured.decode_seconds < 0.005
    assert measured.sample_bytes == 400
    assert measured.worker_seconds >= 4 * measured.wait_seconds


def test_the_queue_takes_a_measured_loader() -> None:
    loader = torch.utils.data.DataLoader(Sleeping(), batch_size=4, num_workers=2, prefetch_factor=3)
    measured = measure_loader(loader, budget_seconds=0.5)
    assert (measured.workers, measured.prefetch) == (2, 3)
    assert measured.service().seconds(4) == pytest.approx(measured.worker_seconds)
    assert "samples_seconds" not in measured.as_dict()


def test_pictures_are_decoded_to_what_a_network_takes(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    write_jpegs(tmp_path, files=3, size=(160, 120))
    pictures = JpegFolder(tmp_path, length=6)
    image, label = pictures[4]
    assert (tuple(image.shape), label) == ((3, 224, 224), 4)
    measured = measure_loader(torch.utils.data.DataLoader(pictures, batch_size=2), budget_seconds=0.5)
    assert measured.decode_seconds > 0
    assert measured.sample_bytes == 4 * 3 * 224 * 224 + 8
    assert measured.stored_bytes == pictures.stored_bytes


def test_any_iterable_is_timed_by_the_batch() -> None:
    batches = (np.zeros((5, 10), np.float32) for _ in range(20))
    measured = measure_loader(batches, budget_seconds=0.1)
    assert (measured.batch, measured.sample_bytes, measured.collate_seconds) == (5, 40, None)


def test_what_cannot_be_iterated_is_refused() -> None:
    with pytest.raises(BadInput, match="a loader is a DataLoader or an iterable, got int"):
        measure_loader(3)


def test_an_empty_loader_is_refused() -> None:
    with pytest.raises(BadInput, match="has no batches"):
        measure_loader([])


def test_idle_processors_are_no_more_than_there_are() -> None:
    assert 0 < idle_cpus() <= usable_cpus()


def test_a_machine_too_busy_to_start_processes_in_time_has_few_idle_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epochcast.measure.bench.idle_cpus.START_SECONDS", -5.0)
    assert 0 < idle_cpus() < 0.5
