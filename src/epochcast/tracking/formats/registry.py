"""Every format that a log is compared with."""

from epochcast.errors import UnknownName
from epochcast.tracking.formats import (
    bars,
    keras,
    language,
    libraries,
    mlperf,
    own,
    plain,
    records,
    speech,
    tables,
    vision,
)
from epochcast.tracking.formats.rule import Format

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
    for known in FORMATS:
        if known.name == name:
            return known
    raise UnknownName("log format", name, [known.name for known in FORMATS])
