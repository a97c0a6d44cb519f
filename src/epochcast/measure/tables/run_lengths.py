"""How long the texts of a row are, as the option `lengths` of a job takes it.

    seq<=768 (mean 210)                              mean=210,max=768,padded
    mean 210, max 768                                the same; "bucketed by length" in the note: bucketed
    max 2048, "texts of 3234±2548 tokens"            mean=3234,std=2548,max=2048,cut,padded
    seq<=2048 of a source that says so elsewhere     the same, by `source_texts` of `row_names.toml`
    seq<=512, "mean 120 tokens"                      mean=120,max=512,padded
    max 2048 (alpaca, padded to longest)             mean=120,max=1304,padded: by `data_texts` of `row_names.toml`
    seq<=512 and nothing else                        mean=256,max=512,padded: spread evenly up to the maximum

Whether longer texts are cut or left out depends on the trainer (`drops_long_texts`).
"""

import re
from collections.abc import Mapping

from epochcast.measure.tables.cells import Row, text
from epochcast.measure.tables.row_names import is_trainer, row_names
from epochcast.measure.tables.run_network import longest_sample
from epochcast.predict.forecast.lengths import BUCKETED, PADDED
from epochcast.predict.forecast.limited_lengths import CUT, DROPPED

_UNCUT = re.compile(r"\btexts of (\d+) ?(?:±|\+/?-) ?(\d+) tokens\b")


_MEAN = re.compile(r"\bmean (\d+) tokens\b|\btexts of (\d+) tokens\b")


def says_lengths(row: Row) -> bool:
    """Whether a row, or its source, says more of its texts than the longest."""
    words, note = text(row, "input_shape").casefold(), text(row, "note").casefold()
    return bool(re.search(r"\bmean \d+\b", words) or _uncut_texts(row, note) or _MEAN.search(note) or _data_texts(row))


def length_distribution(row: Row) -> str | None:
    """Mean and maximum of texts as a job takes them; None where a row has no maximum, or is of texts of one length.
    Where their mean is not given, or is that of texts before they are cut, lengths are spread evenly up to the
    maximum, unless that mean is below its half.
    """
    words, note = text(row, "input_shape").casefold(), text(row, "note").casefold()
    most = re.search(r"(?:seq ?<= ?|\bmax )(\d+)\b", words)
    if most is None:
        return None
    way = BUCKETED if "bucketed by length" in note else PADDED
    mean = re.search(r"\bmean (\d+)\b", words)
    if mean is not None:
        return f"mean={mean[1]},max={most[1]},{way}" if int(mean[1]) <= int(most[1]) else None
    uncut = _uncut_texts(row, note)
    of_data = _data_texts(row)
    if uncut is None and of_data is not None and of_data["mean"] < int(most[1]):
        return f"mean={of_data['mean']},max={min(int(most[1]), of_data['longest'])},{way}"
    if uncut is None:
        return _spread_evenly(row, note, way)
    limit = DROPPED if is_trainer("drops_long_texts", text(row, "framework")) else CUT
    return f"mean={uncut[0]},std={uncut[1]},max={most[1]},{limit},{way}"


def _data_texts(row: Row) -> Mapping[str, int] | None:
    """Mean and longest of the texts of a data set that a row names beside its maximum, or as its data."""
    words = re.split(r"[^a-z0-9\-]+", f"{text(row, 'input_shape')} {text(row, 'data')}".casefold())
    return next((texts for name, texts in row_names()["data_texts"].items() if name in words), None)


def _spread_evenly(row: Row, note: str, way: str) -> str | None:
    longest = longest_sample(row)
    if longest is None:
        return None
    half, noted = (longest + 1) // 2, _MEAN.search(note)
    mean = min(half, int(noted[1] or noted[2])) if noted else half
    return f"mean={mean},max={longest},{way}"


def _uncut_texts(row: Row, note: str) -> tuple[int, int] | None:
    """Mean and standard deviation of the texts before a maximum: by the row, else by its source."""
    match = _UNCUT.search(note)
    if match is not None and int(match[2]):
        return int(match[1]), int(match[2])
    texts = row_names()["source_texts"].get(text(row, "source"))
    return (texts["mean"], texts["std"]) if texts else None
