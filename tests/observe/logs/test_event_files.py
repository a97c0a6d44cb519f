"""Event files of TensorBoard: by hand, against TensorBoard's own reader, and broken ones."""

import struct
from pathlib import Path

import pytest

from epochcast.observe.logs.event_files import EventReader, Scalar, is_event_file, masked_crc32c
from epochcast.observe.logs.log_reader import LogReader, read_log


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def message(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))


def scalar_event(tag: str, step: int, wall_seconds: float, value: float, as_tensor: bool = False) -> bytes:
    if as_tensor:
        tensor = b"\x08\x01" + message(4, struct.pack("<f", value))  # dtype float, tensor_content
        inner = message(1, tag.encode()) + message(8, tensor)
    else:
        inner = message(1, tag.encode()) + b"\x15" + struct.pack("<f", value)
    return record(b"\x09" + struct.pack("<d", wall_seconds) + b"\x10" + varint(step) + message(5, message(1, inner)))


START = record(b"\x09" + struct.pack("<d", 1.9e9) + message(3, b"brain.Event:2"))


def test_the_checksum_by_hand() -> None:
    # CRC-32C of "123456789" is 0xE3069283 (RFC 3720, B.4 uses the same polynomial); masked by rotation and addition.
    crc = 0xE3069283
    assert masked_crc32c(b"123456789") == (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


@pytest.mark.parametrize("as_tensor", [False, True])
def test_scalars_of_both_styles_are_read_byte_by_byte(as_tensor: bool) -> None:
    data = START + scalar_event("train/loss", 300, 1.9e9 + 5, 0.5, as_tensor)
    assert is_event_file(data)
    reader = EventReader()
    found = [scalar for byte in data for scalar in reader.feed(bytes([byte]))]
    assert found == [Scalar("train/loss", 300, 1.9e9 + 5, 0.5)]


def test_a_broken_record_is_left_out_and_the_next_one_found() -> None:
    broken = bytearray(scalar_event("loss", 1, 1.9e9, 1.0))
    broken[20] ^= 0xFF
    reader = EventReader()
    found = reader.feed(START + bytes(broken) + b"junk in between" + scalar_event("loss", 2, 1.9e9, 0.5))
    assert [scalar.step for scalar in found] == [2]
    assert reader.broken > 0


def test_the_training_curve_counts_and_validation_does_not(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    events = [START]
    for step in range(10, 110, 10):
        events.append(scalar_event("val/loss", step // 100, 1.9e9 + step + 1, 0.9))
        events.append(scalar_event("train/loss", step, 1.9e9 + step, 0.5))
    path.write_bytes(b"".join(events))
    log = read_log(path)
    train = [seen for seen in log.reports if seen.phase == "train"]
    assert [(seen.step, seen.attempt) for seen in train] == [(step, 0) for step in range(10, 110, 10)]
    assert (train[-1].clock_seconds or 0) - (train[0].clock_seconds or 0) == pytest.approx(90.0)
    assert log.recognition.name == "tfevents"


def test_bytes_one_by_one_say_the_same_as_all_at_once() -> None:
    data = START + b"".join(scalar_event("loss", n, 1.9e9 + n, 0.5) for n in range(1, 9))
    whole, pieces = LogReader(), LogReader()
    at_once = whole.feed(data) + whole.close()
    assert [seen for byte in data for seen in pieces.feed(bytes([byte]))] + pieces.close() == at_once
    assert len(at_once) == 8


def test_we_read_what_tensorboard_reads(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is the oracle; it is in the extra test-models")
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    from tensorboard.util import tensor_util

    writer = EventFileWriter(str(tmp_path))
    for step in range(50):
        old = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="old", simple_value=1 / (step + 1))])
        tensor = tensor_util.make_tensor_proto(float(step))
        new = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="new", tensor=tensor)])
        for summary in (old, new):
            writer.add_event(event_pb2.Event(wall_time=1.9e9 + step, step=step, summary=summary))
    writer.close()
    (path,) = tmp_path.iterdir()

    theirs = []
    for event in EventFileLoader(str(path)).Load():
        for value in event.summary.value:
            theirs.append((value.tag, event.step, event.wall_time, float(tensor_util.make_ndarray(value.tensor))))
    ours = [(s.tag, s.step, s.wall_seconds, s.value) for s in EventReader().feed(path.read_bytes())]
    assert ours == theirs
    assert len(ours) == 100


def test_files_of_real_writers_read_like_tensorboard_reads_them(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is the oracle; it is in the extra test-models")
    pytest.importorskip("torch.utils.tensorboard", reason="torch's writer is compared; it is in the extra test-models")
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.util import tensor_util
    from torch.utils.tensorboard import SummaryWriter

    for new_style in (False, True):
        folder = tmp_path / str(new_style)
        with SummaryWriter(str(folder)) as writer:
            for step in range(20):
                writer.add_scalar("train/loss", 1 / (step + 1), step, walltime=1.9e9 + step, new_style=new_style)
            writer.add_text("note", "no scalar", 3)
        (path,) = folder.iterdir()
        theirs = [
            (value.tag, event.step, event.wall_time, float(tensor_util.make_ndarray(value.tensor)))
            for event in EventFileLoader(str(path)).Load()
            for value in event.summary.value
            if value.metadata.plugin_data.plugin_name != "text"
        ]
        data = path.read_bytes()
        assert [(s.tag, s.step, s.wall_seconds, s.value) for s in EventReader().feed(data)] == theirs
        assert len(theirs) == 20


def test_a_cut_last_record_waits_for_its_rest() -> None:
    data = b"".join(scalar_event("loss", step, 1.9e9 + step, 0.5) for step in range(5))
    reader = EventReader()
    assert [s.step for s in reader.feed(data[:-7])] == [0, 1, 2, 3]
    assert [s.step for s in reader.feed(data[-7:])] == [4]
    assert reader.broken == 0


def test_of_a_long_curve_some_records_are_decoded_and_every_restart_and_pause_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("epochcast.observe.logs.line_sampling.EXACT_REPORTS", 100)
    events, wall = [START], 1.9e9
    for _ in range(2):
        for step in range(1, 2001):
            wall += 500.0 if step == 700 else 1.0
            events += [scalar_event(tag, step, wall, 0.5) for tag in ("loss", "lr", "grad_norm")]
    data = b"".join(events)
    reader = LogReader()
    found = [seen for at in range(0, len(data), 1 << 16) for seen in reader.feed(data[at : at + (1 << 16)])]
    assert len(found) < 500
    assert (found[-1].step, found[-1].attempt) == (2000, 1)
    assert found[-1].clock_seconds == pytest.approx(2 * 2499 - 1)
    assert {699, 700} <= {seen.step for seen in found if seen.attempt == 1}


def test_zeros_and_junk_between_records_are_passed_over_quickly() -> None:
    reader = EventReader()
    found = reader.feed(START + bytes(300_000) + b"junk" * 100_000 + scalar_event("loss", 7, 1.9e9, 0.5))
    assert [scalar.step for scalar in found] == [7]
