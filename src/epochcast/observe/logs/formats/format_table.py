"""Every format that a log is compared with."""

from epochcast.errors import UnknownName
from epochcast.observe.logs.formats import csv_tables as tables
from epochcast.observe.logs.formats import epochcast_lines as own
from epochcast.observe.logs.formats import json_records as records
from epochcast.observe.logs.formats import keras_lines as keras
from epochcast.observe.logs.formats import language_trainers as language
from epochcast.observe.logs.formats import library_lines as libraries
from epochcast.observe.logs.formats import mlperf_events as mlperf
from epochcast.observe.logs.formats import plain_loops as plain
from epochcast.observe.logs.formats import progress_bars as bars
from epochcast.observe.logs.formats import speech_trainers as speech
from epochcast.observe.logs.formats import vision_trainers as vision
from epochcast.observe.logs.formats.format_rule import Format

FORMATS: tuple[Format, ...] = (
    own.FORMAT,
    *vision.FORMATS,
    *language.FORMATS,
    *speech.FORMATS,
    *libraries.FORMATS,
    *keras.FORMATS,
    *bars.FORMATS,
    *mlperf.FORMATS,
    *records.FORMATS,
    *tables.FORMATS,
    *plain.FORMATS,
)


def find_format(name: str) -> Format:
    """The format of that name."""
    for format in FORMATS:
        if format.name == name:
            return format
    raise UnknownName("log format", name, [format.name for format in FORMATS])
