"""Trainers of vision models: Caffe, PyTorch's examples, timm, Swin, OpenMMLab, Detectron2, GANs, Torch7."""

from epochcast.observe.logs.formats.format_rule import Format, LineRule, format_of

_NAMESPACE = LineRule("epochs=", r"Namespace\(.*?\b(?:num_|max_|n_)?epochs=(?P<epochs>\d+)", "header")
_FLAG = LineRule("--epochs", r"--epochs[ =](?P<epochs>\d+)", "header")
_MAX_ITER = LineRule("MAX_ITER", r"MAX_ITER:? (?P<total>\d+)", "header")
_TIMED = (
    r"(?:[^\t]{0,40}\s)??[Tt]ime:?\s+(?P<step_seconds>[\d.]+)s? ?\(\s*(?P<average_seconds>[\d.]+)s?\)"
    r"(?:(?:\s+Speed [^\t]*)?\s+Data:?\s+(?P<data_seconds>[\d.e-]+))?"
)
_LOSS = r"(?:.*?\b[Ll]oss\S*\s+(?P<loss>NUM))?"

CAFFE = format_of(
    "caffe",
    "Caffe",
    LineRule(
        "Iteration ",
        r"Iteration (?P<step>\d+)(?: \(NUM iter/s, (?P<interval_seconds>[\d.]+)s/\d+ iters?\))?(?:, [\d./]+ep)?, "
        r"loss = (?P<loss>NUM)",
    ),
    LineRule("Testing net", r"Iteration (?P<step>\d+), Testing net", "validation"),
    LineRule("max_iter:", r"max_iter:\s*(?P<total>\d+)", "header"),
    LineRule("Snapshotting", r"Snapshotting (?:to|solver)", "checkpoint"),
    LineRule("Optimization Done", r"solver.cpp:\d+\] Optimization Done", "end"),
)

PYTORCH_IMAGENET = format_of(
    "pytorch_imagenet",
    "PyTorch examples",
    LineRule(
        "Epoch: [",
        r"Epoch: \[(?P<epoch_any>\d+)(?:/(?P<epochs>\d+))?\]\[\s*(?P<batch_index>\d+)/(?P<batches>\d+)\],?\s+"
        + _TIMED
        + _LOSS,
    ),
    LineRule("Test: [", r"Test: \[\s*\d+/\d+\]", "validation"),
    LineRule("ndEpoch=", r"\bendEpoch=(?P<epochs>\d+)", "header"),
    _NAMESPACE,
)

GNMT = format_of(
    "gnmt",
    "GNMT (NVIDIA)",
    LineRule(
        "TRAIN [",
        r"(?:(?P<rank>\d+): )?TRAIN \[(?P<epoch_index>\d+)\]\[(?P<batch_index>\d+)/(?P<batches>\d+)\]\s+" + _TIMED,
    ),
    LineRule("VALIDATION [", r"VALIDATION \[", "validation"),
)

TIMM = format_of(
    "timm",
    "timm",
    LineRule(
        "Train: ",
        r"Train: (?P<epoch_index>\d+) \[\s*(?P<batch_index>\d+)/(?P<batches>\d+) \(\s*\d+%\)\]\s+Loss: +"
        r"(?P<loss>NUM).*?"
        r"Time: (?P<step_seconds>[\d.]+)s, .*?\(\s*(?P<average_seconds>[\d.]+)s,(?:.*?Data: (?P<data_seconds>[\d.]+))?",
    ),
    LineRule("Test: [", r"Test: \[\s*\d+/\d+\]", "validation"),
    LineRule("Scheduled epochs", r"Scheduled epochs: (?P<epochs>\d+)", "header"),
)

SWIN = format_of(
    "swin",
    "Swin",
    LineRule(
        "Train: [",
        r"Train: \[(?P<epoch_any>\d+)/(?P<epochs>\d+)\]\[(?P<batch_index>\d+)/(?P<batches>\d+)\]\s+eta "
        r"(?P<epoch_remaining>DUR)"
        r".*?time (?P<step_seconds>[\d.]+) \(\s*(?P<average_seconds>[\d.]+)\)\s+loss (?P<loss>NUM)",
    ),
    LineRule("Test: [", r"Test: \[\s*\d+/\d+\]", "validation"),
)

METRICLOGGER = format_of(
    "metriclogger",
    "torchvision, DETR, DINO",
    LineRule(
        "  eta: ",
        r"[Ee]poch:? \[?(?P<epoch_any>\d+)(?:/(?P<epochs>\d+))?\]?:?\s+\[\s*(?P<batch_index>\d+)/(?P<batches>\d+)\]\s+"
        r"eta: (?P<epoch_remaining>DUR)(?:.*?\bloss: (?P<loss>NUM))?.*?\btime: (?P<step_seconds>[\d.]+)"
        r"(?:\s+data: (?P<data_seconds>[\d.]+))?",
    ),
    LineRule(
        "Total time: ",
        r"Epoch: \[(?P<epoch_any>\d+)(?:/\d+)?\] Total time: (?P<section>DUR)",
        closes_epoch=True,
    ),
    LineRule("Total time: ", r"(?:Test|Eval|Valid|^)\S* *Total time: (?P<pause>DUR)", "validation"),
    LineRule("  eta: ", r"(?i)(?:test|eval|valid|val)\w*:?\s+.*\[\s*\d+/\d+\]\s+eta:", "validation"),
    LineRule(
        "  eta: ",
        r"[Tt]rain\w*:?\s+\[\s*(?P<index>\d+)/(?P<total>\d+)\]\s+eta: (?P<remaining>DUR).*?\btime: "
        r"(?P<step_seconds>[\d.]+)(?:\s+data: (?P<data_seconds>[\d.]+))?",
    ),
    _NAMESPACE,
    _FLAG,
)

TORCH7 = format_of(
    "torch7",
    "Torch7",
    LineRule(
        "Epoch: [",
        r"Epoch: \[(?P<epoch>\d+)\]\[\s*(?P<batch>\d+) ?/\s*(?P<batches>\d+)\]\s+Time:? (?P<step_seconds>[\d.]+)\s+"
        r"(?!\()(?:Data(?:Time)?:? (?P<data_seconds>[\d.]+),?)?.*?(?:[Ll]oss|Err\w*):? (?P<loss>NUM)",
    ),
    LineRule("Test: [", r"Test: \[\d+\]\[", "validation"),
    LineRule("poch", r"\b(?:maxEpoch|nEpochs|max_epoch) : (?P<epochs>\d+)", "header"),
)

MMCV_TEXT = format_of(
    "mmcv_text",
    "mmdetection 2 and its kin",
    LineRule(
        "Epoch [",
        r"Epoch \[(?P<epoch>\d+)\]\[(?P<batch>\d+)/(?P<batches>\d+)\]\s*lr\w*: .*?(?:eta: (?P<remaining>DUR), )?"
        r"\btime: (?P<step_seconds>[\d.]+), data_time: (?P<data_seconds>[\d.]+)(?:.*?\bloss: (?P<loss>NUM))?",
    ),
    LineRule(
        "Iter [",
        r"Iter \[(?P<step>\d+)/(?P<total>\d+)\]\s*lr\w*: .*?(?:eta: (?P<remaining>DUR), )?"
        r"\btime: (?P<step_seconds>[\d.]+), data_time: (?P<data_seconds>[\d.]+)(?:.*?\bloss: (?P<loss>NUM))?",
    ),
    LineRule("(val)", r"(?:Epoch|Iter)\(val\)", "validation"),
    LineRule("Saving checkpoint", r"Saving checkpoint at", "checkpoint"),
    LineRule(", max: ", r"workflow: .*, max: (?P<epochs>\d+) epochs", "header"),
    LineRule(", max: ", r"workflow: .*, max: (?P<total>\d+) iters", "header"),
)

MMENGINE_TEXT = format_of(
    "mmengine_text",
    "mmengine",
    LineRule(
        "(train)",
        r"Epoch\(train\)\s+\[(?P<epoch>\d+)\]\[\s*(?P<batch>\d+)/(?P<batches>\d+)\]\s.*?(?:eta: (?P<remaining>DUR)\s+)?"
        r"\btime: (?P<step_seconds>[\d.]+)\s+data_time: (?P<data_seconds>[\d.]+)(?:.*?\bloss: (?P<loss>NUM))?",
    ),
    LineRule(
        "(train)",
        r"Iter\(train\)\s+\[\s*(?P<step>\d+)/\s*(?P<total>\d+)\]\s.*?(?:eta: (?P<remaining>DUR)\s+)?"
        r"\btime: (?P<step_seconds>[\d.]+)\s+data_time: (?P<data_seconds>[\d.]+)(?:.*?\bloss: (?P<loss>NUM))?",
    ),
    LineRule("(val)", r"(?:Epoch|Iter)\(val\)", "validation"),
    LineRule("Saving checkpoint", r"Saving checkpoint at", "checkpoint"),
    LineRule("max_epochs", r"\bmax_epochs ?= ?(?P<epochs>\d+)", "header"),
    LineRule("max_iters", r"\bmax_iters ?= ?(?P<total>\d+)", "header"),
)

DETECTRON2_TEXT = format_of(
    "detectron2_text",
    "Detectron2",
    LineRule(
        "iter: ",
        r"(?:eta: (?P<remaining>DUR)\s+)?(?:\bepoch/iter: \d+/|\biter: )(?P<index>\d+)\s+total_loss: "
        r"(?P<loss>NUM)(?:.*?\s+time: (?P<step_seconds>[\d.]+))?"
        r"(?:.*?\s+data_time: (?P<data_seconds>[\d.]+))?",
    ),
    LineRule("Start inference", r"Start inference on", "validation"),
    LineRule("Saving checkpoint", r"Saving checkpoint to", "checkpoint"),
    _MAX_ITER,
)

MASKRCNN_BENCHMARK = format_of(
    "maskrcnn_benchmark",
    "maskrcnn-benchmark",
    LineRule(
        "iter: ",
        r"(?:(?P<rank>\d+): )?.*eta: (?P<remaining>DUR)\s+iter: (?P<step>\d+)\s.*?\btime: "
        r"(?P<step_seconds>[\d.]+) \([\d.]+\)\s+"
        r"data: (?P<data_seconds>[\d.]+) \([\d.]+\)(?:\s+loss: (?P<loss>NUM))?",
    ),
    LineRule("Start evaluation", r"Start evaluation on", "validation"),
    _MAX_ITER,
)

BASICSR = format_of(
    "basicsr",
    "BasicSR",
    LineRule(
        ", iter:",
        r"[\[<]epoch:\s*(?P<epoch_index>\d+), iter:\s*(?P<step>[\d,]+), lr:\S*?[\]>]\s*(?:\[eta: "
        r"(?P<remaining>DUR), time \(data\): "
        r"(?P<step_seconds>[\d.]+) \((?P<data_seconds>[\d.]+)\)\])?(?:.*?\bl_\w+: (?P<loss>NUM))?",
    ),
    LineRule("iter: ", r"^\s*(?:niter|total_iter): (?P<total>\d+)", "header"),
    LineRule("otal epochs", r"[Tt]otal epochs.*?iters:? (?P<total>[\d,]+)", "header"),
    LineRule("Saving models", r"Saving models and training states", "checkpoint"),
    LineRule("# Validation", r"# Validation|Validation \S+", "validation"),
)

PIX2PIX = format_of(
    "pix2pix",
    "pytorch-CycleGAN-and-pix2pix",
    LineRule(
        "(epoch: ", r"\(epoch: (?P<epoch>\d+), iters: (?P<batch>\d+), time: [\d.]+, data: (?P<data_seconds>[\d.]+)"
    ),
    LineRule(
        "Time Taken",
        r"End of epoch (?P<epochs_done>\d+) / (?P<epochs>\d+)\s+Time Taken: (?P<section_seconds>\d+) sec",
        closes_epoch=True,
    ),
)

STYLEGAN = format_of(
    "stylegan",
    "StyleGAN 2 and 3",
    LineRule(
        "sec/tick",
        r"tick \d+\s+kimg (?P<step>[\d.]+)\s+(?:lod [\d.]+\s+)?(?:minibatch \d+\s+)?time "
        r"(?P<elapsed>(?:\d+[dhms] ?)+)\s+sec/tick [\d.]+\s+sec/kimg (?P<step_seconds>[\d.]+)",
    ),
    LineRule("kimg", r"(?:Training for|Training duration:|total_kimg\W+) ?(?P<total>\d+)(?: kimg)?", "header"),
    LineRule("Evaluating metrics", r"^Evaluating metrics", "validation"),
)

DTRB = format_of(
    "dtrb",
    "deep-text-recognition-benchmark",
    LineRule(
        "lapsed_time",
        r"\[(?P<step>\d+)/(?P<total>\d+)\] (?:Train |)[Ll]oss: (?P<loss>NUM).*[Ee]lapsed_time: "
        r"(?P<elapsed_seconds>[\d.]+)",
    ),
)

DARKNET = format_of(
    "darknet",
    "Darknet",
    LineRule(
        " rate, ",
        r"^\W*(?P<step>\d+): (?P<loss>NUM), NUM avg(?: loss)?, NUM rate, (?P<step_seconds>[\d.]+) seconds, \d+ images",
    ),
    LineRule("max_batches", r"max_batches ?= ?(?P<total>\d+)", "header"),
    LineRule("Saving weights", r"Saving weights to", "checkpoint"),
)

CHAR_RNN = format_of(
    "char_rnn",
    "char-rnn",
    LineRule(
        "time/batch",
        r"(?P<step>\d+)/(?P<total>\d+) \(epoch NUM\), train_loss = (?P<loss>NUM),.*?time/batch = "
        r"(?P<step_seconds>[\d.]+)",
    ),
)

FORMATS: tuple[Format, ...] = (
    CAFFE,
    PYTORCH_IMAGENET,
    GNMT,
    TIMM,
    SWIN,
    METRICLOGGER,
    TORCH7,
    MMCV_TEXT,
    MMENGINE_TEXT,
    DETECTRON2_TEXT,
    MASKRCNN_BENCHMARK,
    BASICSR,
    PIX2PIX,
    STYLEGAN,
    DTRB,
    DARKNET,
    CHAR_RNN,
)
