"""Trainers of speech models: ESPnet, WeNet, icefall, Kaldi, wav2letter."""

from epochcast.observe.logs.formats.format_rule import Format, LineRule, format_of

ESPNET2 = format_of(
    "espnet2",
    "ESPnet 2",
    LineRule(
        "epoch:train:",
        r"(?P<epoch>\d+)epoch:train:\d+-(?P<batch>\d+)batch:(?:.*?\bloss=(?P<loss>NUM))?.*?train_time=(?P<step_seconds>[\d.]+)",
    ),
    LineRule("epoch started", r"\d+/(?P<epochs>\d+)epoch started", "header"),
    LineRule("epoch results", r"epoch results:", "validation"),
)

WENET = format_of(
    "wenet",
    "WeNet",
    LineRule(
        "TRAIN Batch ",
        r"TRAIN Batch (?P<epoch_index>\d+)/(?P<batch>\d+) loss (?P<loss>NUM)(?:.*?\brank (?P<rank>\d+))?",
    ),
    LineRule("CV Batch ", r"CV Batch \d+/", "validation"),
)

ICEFALL = format_of(
    "icefall",
    "icefall",
    LineRule("validation", r"Epoch \d+, validation", "validation"),
    LineRule(
        ", batch ",
        r"(?:\((?P<rank>\d+)/\d+\) )?Epoch (?P<epoch>\d+), batch (?P<batch>\d+), (?:global_batch_idx: (?P<step>\d+), )?"
        r"(?:batch size: \d+, )?loss\[loss=(?P<loss>NUM)",
    ),
)

KALDI = format_of(
    "kaldi",
    "Kaldi",
    LineRule("Jobs: ", r"Iter: (?P<index>\d+)/(?P<last_index>\d+)\s+Jobs: \d+\s+Epoch: "),
)

WAV2LETTER = format_of(
    "wav2letter",
    "wav2letter, Flashlight",
    LineRule("nupdates: ", r"epoch:\s+\d+ \| nupdates:\s+(?P<step>\d+) \|(?:.*?runtime: (?P<interval>DUR))?"),
)

FORMATS: tuple[Format, ...] = (ESPNET2, WENET, ICEFALL, KALDI, WAV2LETTER)
