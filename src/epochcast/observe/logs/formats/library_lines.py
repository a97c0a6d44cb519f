"""What libraries print by themselves: TensorFlow 1 and 2, MXNet and Gluon, PaddlePaddle, NVIDIA's DLLogger."""

from epochcast.observe.logs.formats.format_rule import Format, LineRule, format_of

_NAMESPACE = LineRule("epochs=", r"Namespace\(.*?\b(?:num_|max_)?epochs=(?P<epochs>\d+)", "header")

TF1 = format_of(
    "tf1_estimator",
    "TensorFlow 1",
    LineRule(", step = ", r"loss = (?P<loss>NUM), step = (?P<step>\d+)(?: \((?P<interval_seconds>[\d.]+) sec\))?"),
    LineRule("step = ", r"(?<!\w)step = (?P<step>\d+), loss = (?P<loss>NUM)(?: \((?P<interval_seconds>[\d.]+) sec\))?"),
    LineRule(
        "sec/batch",
        r"step (?P<step>\d+), loss = (?P<loss>NUM) ?\(NUM examples/sec;\s+(?P<step_seconds>NUM)\s+sec/batch\)",
    ),
    LineRule("sec/step", r"global step (?P<step>\d+): loss = (?P<loss>NUM) \((?P<step_seconds>[\d.]+) sec/step\)"),
    LineRule("steps = ", r"Num(?: train)? steps = (?P<total>\d+)", "header"),
    LineRule("Saving checkpoints", r"Saving checkpoints for", "checkpoint"),
    LineRule("evaluation", r"(?:Starting|Finished) evaluation at", "validation"),
)

TF_CNN_BENCHMARKS = format_of(
    "tf_cnn_benchmarks",
    "TensorFlow 1 benchmarks",
    LineRule(
        "images/sec: ",
        r"^\S*?(?P<step>\d+)\s+images/sec: (?P<samples_per_second>[\d.]+) \+/-.*?\)\s+(?P<loss>NUM)(?:\s+"
        r"(?P<unix>1\d{9})\b)?",
    ),
    LineRule("Num batches:", r"Num batches:\s+(?P<total>\d+)", "header"),
    LineRule("total images/sec", r"^total images/sec: ", "end"),
)

TF_OBJECT_DETECTION = format_of(
    "tf_object_detection",
    "TensorFlow object detection",
    LineRule(
        "per-step time",
        r"model_lib\w*\.py:\d+\] Step (?P<step>\d+) per-step time (?P<step_seconds>[\d.]+)s(?: loss=(?P<loss>NUM))?",
    ),
    LineRule("num_steps", r"\bnum_steps: (?P<total>\d+)", "header"),
)

TF2 = format_of(
    "tf2",
    "TensorFlow 2 Model Garden",
    LineRule("BenchmarkMetric", r"'global step': ?(?P<step>\d+), 'time_taken': (?P<interval_seconds>[\d.]+)"),
    LineRule("Train Step: ", r"Train Step: (?P<step>\d+)/(?P<total>\d+)\s+/ loss = (?P<loss>NUM)"),
    LineRule(
        "TimeHistory: ", r"TimeHistory: (?P<interval_seconds>[\d.]+) seconds, .*between steps \d+ and (?P<step>\d+)"
    ),
    LineRule("steps/sec: ", r"train \| step:\s+(?P<step>\d+) \| steps/sec:\s+(?P<steps_per_second>[\d.]+)"),
    LineRule("eval | step", r"\beval \| step:", "validation"),
)

MXNET = format_of(
    "mxnet_speedometer",
    "MXNet",
    LineRule(
        "samples/sec",
        r"(?:Node\[(?P<rank>\d+)\] )?Epoch\[(?P<epoch_index>\d+)\] Batch ?\[(?:\d+-)?(?P<batch>\d+)\]\s+"
        r"Speed: (?P<samples_per_second>[\d.]+) samples/sec(?! [\d.]+ tokens|.*\t ?lr=)",
    ),
    LineRule(
        "Time cost=",
        r"(?:Node\[(?P<rank>\d+)\] )?Epoch\[(?P<epochs_done_index>\d+)\] Time cost=(?P<section_seconds>[\d.]+)",
        closes_epoch=True,
    ),
    LineRule("Validation-", r"Epoch\[\d+\] Validation-", "validation"),
    LineRule("num_epochs", r"\bnum_epochs?=(?P<epochs>\d+)", "header"),
)

GLUON_CLASSIFICATION = format_of(
    "gluon_classification",
    "GluonCV",
    LineRule(
        "samples/sec",
        r"Epoch\[(?P<epoch_index>\d+)\] Batch ?\[(?P<batch_index>\d+)\](?:/\[(?P<batches>\d+)\])?\s+"
        r"Speed: (?P<samples_per_second>[\d.]+) samples/sec.*\t ?l(?:r|oss)=",
    ),
    LineRule(
        "samples/sec",
        r"\[Epoch (?P<epochs_done_index>\d+)\] speed: \d+ samples/sec\s+time cost: (?P<section_seconds>[\d.]+)",
        closes_epoch=True,
    ),
    LineRule(
        "samples/sec over",
        r"Epoch\[(?P<epochs_done_index>\d+)\]\s+Speed: \d+ samples/sec over (?P<section_seconds>[\d.]+) secs",
        closes_epoch=True,
    ),
    LineRule("validation: ", r"\[Epoch \d+\] validation: ", "validation"),
    _NAMESPACE,
)

GLUON_DETECTION = format_of(
    "gluon_detection",
    "GluonCV",
    LineRule(
        "samples/sec",
        r"\[Epoch (?P<epoch_index>\d+)\]\[Batch (?P<batch_index>\d+)\], Speed: "
        r"(?P<samples_per_second>[\d.]+) samples/sec",
    ),
    LineRule(
        "Training cost",
        r"\[Epoch (?P<epochs_done_index>\d+)\] Training cost: (?P<section_seconds>[\d.]+)",
        closes_epoch=True,
    ),
    LineRule("Validation", r"\[Epoch \d+\] Validation", "validation"),
    _NAMESPACE,
)

GLUON_EPOCH_ONLY = format_of(
    "gluon_epoch_only",
    "GluonCV",
    LineRule(
        " time: ",
        r"\[Epoch (?P<epochs_done_index>\d+)\] train=NUM val=NUM loss=(?P<loss>NUM) time: (?P<interval_seconds>[\d.]+)",
    ),
    _NAMESPACE,
)

GLUONNLP_TS = format_of(
    "gluonnlp_ts",
    "GluonNLP",
    LineRule("Batch ", r"\[Epoch (?P<epoch_index>\d+) Batch (?P<batch>\d+)/(?P<batches>\d+)\] .*?loss=(?P<loss>NUM)"),
    LineRule("valid", r"\[Epoch \d+\] (?:valid|test) ", "validation"),
    _NAMESPACE,
)

GLUONNLP_STEP = format_of(
    "gluonnlp_step_time",
    "GluonNLP",
    LineRule("throughput=", r"\[step (?P<index>\d+)\]\s+\w*loss=(?P<loss>NUM).* time=(?P<interval_seconds>[\d.]+)"),
    LineRule("Saving checkpoints", r"\[step \d+\] Saving", "checkpoint"),
    LineRule("num_steps=", r"\bnum_steps=(?P<total>\d+)", "header"),
)

PADDLE_DETECTION = format_of(
    "ppdet",
    "PaddleDetection",
    LineRule(
        "learning_rate: ",
        r"Epoch: \[(?P<epoch_index>\d+)\] \[\s*(?P<batch_index>\d+)/(?P<batches>\d+)\] learning_rate: .*?"
        r"(?:\bloss: (?P<loss>NUM) )?.*?eta: (?P<remaining>DUR) batch_cost: "
        r"(?P<step_seconds>[\d.]+) data_cost: (?P<data_seconds>[\d.]+)",
    ),
    LineRule("Eval iter", r"Eval iter: \d+", "validation"),
    LineRule("Save checkpoint", r"Save checkpoint", "checkpoint"),
)

PADDLE_VIDEO = format_of(
    "paddlevideo",
    "PaddleVideo",
    LineRule(
        "train step:",
        r"epoch:\[\s*(?P<epoch>\d+)/(?P<epochs>\d+)\s*\]\s+train step:\s*(?P<batch_index>\d+)\s.*?\bloss: (?P<loss>NUM)"
        r".*?batch_cost: (?P<step_seconds>[\d.]+) sec, reader_cost: (?P<data_seconds>[\d.]+)",
    ),
    LineRule("val step:", r"\] val step:", "validation"),
)

PADDLE = format_of(
    "paddle",
    "PaddlePaddle",
    LineRule(
        "[TRAIN]",
        r"\[TRAIN\] epoch: \d+, iter: (?P<step>\d+)/(?P<total>\d+), loss: (?P<loss>NUM).*?batch_cost: "
        r"(?P<step_seconds>[\d.]+)"
        r"(?:, reader_cost: (?P<data_seconds>[\d.]+))?(?:.*?ETA (?P<remaining>DUR))?",
    ),
    LineRule(
        "[Train][Epoch",
        r"\[Train\]\[Epoch (?P<epoch>\d+)/(?P<epochs>\d+)\]\[Iter: (?P<batch_index>\d+)/(?P<batches>\d+)\]"
        r"(?:.*?loss: (?P<loss>NUM))?(?:.*?batch_cost: (?P<step_seconds>[\d.]+)s)?(?:.*?eta: (?P<remaining>DUR))?",
    ),
    LineRule(
        "poch: [",
        r"[Ee]poch: \[(?P<epoch>\d+)/(?P<epochs>\d+)\], iter: \[(?P<batch>\d+)/(?P<batches>\d+)\] lr.*?batch_cost: "
        r"(?P<step_seconds>[\d.]+) sec",
    ),
    LineRule(
        "poch: [",
        r"epoch: \[\d+/(?P<epochs>\d+)\], (?:global_step|iter): (?P<step>\d+),(?:.*?\bloss: (?P<loss>NUM))?",
    ),
    LineRule(
        "train step:",
        r"epoch:(?P<epoch_any>\d+)\s*, train step:(?P<batch_index>\d+)\s*, (?:.*?\bloss: (?P<loss>NUM))?"
        r"(?:.*?batch_cost: (?P<step_seconds>[\d.]+))?",
    ),
    LineRule(
        "ms/step",
        r"^step\s+(?P<batch>\d+)/(?P<batches>\d+) (?:\[[=>.]+\] )?- loss: (?P<loss>NUM).* - (?P<step_ms>[\d.]+)ms/step",
    ),
    LineRule(
        "interval_runtime",
        r"loss: (?P<loss>NUM), .*?global_step: (?P<step>\d+), .*?interval_runtime: (?P<interval_seconds>[\d.]+)",
    ),
    LineRule("optimization steps", r"Total optimization steps = (?P<total>[\d,]+)", "header"),
    LineRule(
        "global step ",
        r"global step (?P<step>\d+)(?:/(?P<total>\d+))?, epoch: \d+, batch: \d+, .*?loss: (?P<loss>NUM)"
        r"(?:.*?speed: (?P<steps_per_second>[\d.]+) step/s)?",
    ),
    LineRule("[EVAL]", r"\[EVAL\]", "validation"),
    LineRule("[Eval]", r"\[Eval\]", "validation"),
)

CHAINER_BAR = format_of(
    "chainer_bar",
    "Chainer",
    LineRule(" iter, ", r"^\s*(?P<step>\d+) iter, \d+ epoch / (?P<epochs>\d+) epochs"),
    LineRule(" iter, ", r"^\s*(?P<step>\d+) iter, \d+ epoch / (?P<total>\d+) iterations"),
)

DLLOGGER_TEXT = format_of(
    "dllogger_text",
    "NVIDIA DLLogger",
    LineRule("| took", r"DLL .* - epoch\s+(?P<epochs_done>\d+) \| avg train .*\| took\s+[\d.]+ s"),
    LineRule("| dev", r"DLL .* - epoch\s+\d+ \|\s+dev ", "validation"),
    LineRule(
        " Iteration: ",
        r"DLL .* - Epoch: (?P<epoch_index>\d+) Iteration: (?P<batch_index>\d+)(?:/"
        r"(?P<batches>\d+))? .*?train\.?(?:.*?loss : (?P<loss>NUM))?",
    ),
    LineRule(
        "Iteration: ",
        r"DLL .* - Training Epoch: (?P<epoch_index>\d+) Training Iteration: (?P<batch_index>\d+) "
        r"(?:.*?loss : (?P<loss>NUM))?",
    ),
    LineRule(
        "| iter ",
        r"DLL .* - epoch\s+(?P<epoch>\d+) \| iter\s+(?P<batch>\d+)/(?P<batches>\d+) \| (?:loss (?P<loss>NUM))?",
    ),
    LineRule("| step ", r"DLL .*\| epoch (?P<epoch_index>\d+) \| step (?P<step>\d+) \|avg loss (?P<loss>NUM)"),
    LineRule(
        "DLL ", r"DLL .* - \((?P<epoch_index>\d+), (?P<batch_index>\d+)(?:, \d+)*\) (?!.*\b(?:val|eval|valid|test))"
    ),
    LineRule("DLL ", r"DLL .* - PARAMETER \|? ?epochs : +(?P<epochs>\d+)", "header"),
    LineRule("DLL ", r"DLL .*\b(?:val|eval|valid)", "validation"),
)

FORMATS: tuple[Format, ...] = (
    TF1,
    TF_CNN_BENCHMARKS,
    TF_OBJECT_DETECTION,
    TF2,
    MXNET,
    GLUON_CLASSIFICATION,
    GLUON_DETECTION,
    GLUON_EPOCH_ONLY,
    GLUONNLP_TS,
    GLUONNLP_STEP,
    PADDLE_DETECTION,
    PADDLE_VIDEO,
    PADDLE,
    CHAINER_BAR,
    DLLOGGER_TEXT,
)
