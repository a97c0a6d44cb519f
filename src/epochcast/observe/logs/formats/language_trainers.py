"""Trainers of language models and translation: Megatron, DeepSpeed, fairseq, torchtitan, nanoGPT, OLMo and others."""

from epochcast.observe.logs.formats.format_rule import Format, LineRule, format_of

MEGATRON = format_of(
    "megatron",
    "Megatron-LM",
    LineRule(
        "elapsed time per iteration",
        r"iteration\s+(?P<step>\d+)/\s*(?P<total>\d+) \|.*?elapsed time per iteration \(ms\): (?P<step_ms>[\d.]+)"
        r"(?:.*?lm loss: (?P<loss>NUM))?",
    ),
    LineRule(
        "elapsed time per iteration",
        r"iteration\s+(?P<step>\d+)/\s*(?P<total>\d+) \|.*?elapsed time per iteration \(s\): (?P<step_seconds>[\d.]+)"
        r"(?:.*?lm loss: (?P<loss>NUM))?",
    ),
    LineRule("validation loss at", r"validation loss at iteration", "validation"),
    LineRule("saving checkpoint", r"saving checkpoint at iteration", "checkpoint"),
)

DEEPSPEED = format_of(
    "deepspeed",
    "DeepSpeed",
    LineRule(
        "global_step=",
        r"epoch=(?P<epoch_index>\d+)/micro_step=(?P<batch>\d+)/global_step=(?P<step>\d+), RunningAvgSamplesPerSec",
    ),
    LineRule("SamplesPerSec=", r"timer\.py:\d+:stop\] \d+/(?P<step>\d+), (?:RunningAvg)?SamplesPerSec="),
    LineRule(
        "iter time (s)",
        r"steps: (?P<step>\d+) loss: (?P<loss>NUM) iter time \(s\): (?P<step_seconds>[\d.]+) samples/sec",
    ),
    LineRule(
        "Beginning of Epoch", r"Beginning of Epoch \d+/(?P<epochs>\d+), Total Micro Batches (?P<batches>\d+)", "header"
    ),
    LineRule("Evaluating", r"\*\*\*\*\* Evaluating", "validation"),
)

DEEPSPEED_STEP = format_of(
    "deepspeed_step",
    "DeepSpeed",
    LineRule(", skipped=", r"\[Rank (?P<rank>\d+)\] step=(?P<step>\d+), skipped=\d+, lr="),
    sureness=0.15,
)

FAIRSEQ = format_of(
    "fairseq_simple",
    "fairseq",
    LineRule(
        "num_updates=",
        r"epoch (?P<epoch>\d+):\s+(?P<batch>\d+) / (?P<batches>\d+)\s+(?:\w+=\S+ )*?"
        r"loss=(?P<loss>NUM).*?num_updates=(?P<step>\d+)"
        r"(?:.*?\bwall=(?P<elapsed_seconds>[1-9]\d*))?",
    ),
    LineRule(
        "num_updates=",
        r"epoch (?P<epoch>\d+):\s+\d+%\|[^|]*\|\s*(?P<batch>\d+)/(?P<batches>\d+) \[(?P<section>DUR)<.*?num_updates="
        r"(?P<step>\d+)",
    ),
    LineRule(
        "| num_updates",
        r"epoch (?P<epochs_done>\d+) \| (?:train |)loss (?P<loss>NUM) .*\| num_updates \d+(?:.*\| wall "
        r"(?P<elapsed_seconds>[1-9]\d*))?",
        closes_epoch=True,
    ),
    LineRule("valid on", r"valid on '", "validation"),
    LineRule("max_update", r"max_update['\"]?[=:] ?(?P<total>[1-9]\d*)", "header"),
    LineRule("max_epoch", r"max_epoch['\"]?[=:] ?(?P<epochs>[1-9]\d*)", "header"),
    LineRule("Saved checkpoint", r"Saved checkpoint", "checkpoint"),
)

FAIRSEQ_JSON = format_of(
    "fairseq_json",
    "fairseq",
    LineRule(
        '"num_updates"',
        r'\{"epoch": (?P<epoch>\d+), "update": NUM, "loss": "(?P<loss>NUM)".*?"num_updates": "(?P<step>\d+)"'
        r'(?:.*?"wall": "(?P<elapsed_seconds>[1-9]\d*)")?',
    ),
    LineRule('"valid_loss"', r'"valid_loss": ', "validation"),
    LineRule("max_update", r"['\"]max_update['\"]: (?P<total>[1-9]\d*)", "header"),
    LineRule("Saved checkpoint", r"Saved checkpoint", "checkpoint"),
)

TORCHTITAN = format_of(
    "torchtitan",
    "torchtitan",
    LineRule(
        "step: ",
        r"(?:\[rank(?P<rank>\d+)\]:.*?)?(?<!validate )\bstep:\s+(?P<step>[\d,]+)\s+loss:\s+"
        r"(?P<loss>NUM)\s+.*?\b(?:tps|wps): ",
    ),
    LineRule("validate step", r"validate step:", "validation"),
    LineRule("total steps", r"total steps (?P<total>[\d,]+)", "header"),
    LineRule("Saving the checkpoint", r"Saving the checkpoint", "checkpoint"),
    LineRule("Training completed", r"Training completed", "end"),
)

NANOGPT = format_of(
    "nanogpt",
    "nanoGPT, build-nanogpt",
    LineRule("iter ", r"^iter (?P<index>\d+): loss (?P<loss>NUM)[^,]*, time (?P<step_ms>[\d.]+)ms", is_sampled=True),
    LineRule("| dt: ", r"step\s+(?P<index>\d+) \| loss: (?P<loss>NUM) .*\| dt: (?P<step_ms>[\d.]+)ms", is_sampled=True),
    LineRule("| loss ", r"^(?P<index>\d+) \| loss (?P<loss>NUM) \| lr \S+ \| (?P<step_ms>[\d.]+)ms", is_sampled=True),
    LineRule("val loss", r"^step \d+: train loss NUM.*val loss", "validation"),
    LineRule("validation loss", r"^validation loss: NUM", "validation"),
    LineRule("max_", r"^\s*max_(?:iters|steps) ?= ?(?P<total>\d+)", "header"),
)

NANOCHAT = format_of(
    "nanochat",
    "nanochat",
    LineRule("dt: ", r"step (?P<step>\d+)/(?P<total>\d+) .*?loss: (?P<loss>NUM) .*?\| dt: (?P<step_ms>[\d.]+)ms"),
    LineRule("Validation bpb", r"Validation bpb", "validation"),
)

LITGPT = format_of(
    "litgpt",
    "LitGPT",
    LineRule(
        "iter time",
        r"iter (?P<step>\d+) step \d+(?::| \|) loss(?: train:)? (?P<loss>NUM),.*?iter time: (?P<step_ms>[\d.]+) ?ms",
    ),
    LineRule("val loss", r"iter \d+: val loss", "validation"),
)

LLM_C = format_of(
    "llm.c",
    "llm.c",
    LineRule(
        " loss ",
        r"step\s+(?P<step>\d+)/(?P<total>\d+) \| (?:train )?loss\s+(?P<loss>NUM) .*?\| \(?(?P<step_ms>[\d.]+) ms \|",
    ),
    LineRule("val loss", r"^val loss NUM", "validation"),
)

MODDED_NANOGPT = format_of(
    "modded_nanogpt",
    "modded-nanogpt",
    LineRule("val_loss:", r"^\S*step:\d+/\d+ val_loss:", "validation"),
    LineRule(
        "train_time:",
        r"step:(?P<step>\d+)/(?P<total>\d+)(?: train_loss:(?P<loss>NUM))?.*? train_time:(?P<elapsed_ms>[\d.]+)ms",
    ),
    LineRule(
        "train_time:",
        r"step:(?P<step>\d+)/(?P<total>\d+)(?: train_loss:(?P<loss>NUM))?.*? train_time:(?P<elapsed_seconds>[\d.]+)s",
    ),
)

OLMO = format_of(
    "olmo",
    "OLMo",
    LineRule("[step=", r"\[step=(?P<step>\d+)/(?P<total>\d+)(?:,epoch=\d+(?:/\d+)?)?(?:,eta=(?P<remaining>[^\]]+))?\]"),
    LineRule("heckpoint saved", r"heckpoint saved to", "checkpoint"),
)

NEMO = format_of(
    "nemo",
    "NeMo",
    LineRule(
        "Training epoch ",
        r"Training epoch 0, iteration (?P<index>\d+)/(?P<last_index>\d+) \|(?:.*?reduced_train_loss: (?P<loss>NUM))?"
        r"(?:.*?train_step_timing in s: (?P<step_seconds>[\d.]+))?",
    ),
    LineRule(
        "Training epoch ",
        r"Training epoch (?P<epoch_index>\d+), iteration (?P<batch_index>\d+)/(?P<last_batch_index>\d+) \|"
        r"(?:.*?reduced_train_loss: (?P<loss>NUM))?(?:.*?train_step_timing in s: (?P<step_seconds>[\d.]+))?",
        forgets_total=True,
    ),
    LineRule("alidation", r"Validation epoch|Running evaluation", "validation"),
)

SOCKEYE = format_of(
    "sockeye",
    "Sockeye",
    LineRule(
        "tok/sec=",
        r"\bE=(?P<epoch_index>\d+) B=(?P<step>\d+)\s+s/sec=[\d.]+ tok/sec=[\d.]+(?: u/sec="
        r"(?P<steps_per_second>[\d.]+))?",
    ),
    LineRule(
        "tokens/sec",
        r"Epoch\[(?P<epoch_index>\d+)\] Batch \[(?P<step>\d+)\]\s+Speed: [\d.]+ samples/sec [\d.]+ tokens/sec"
        r"(?: (?P<steps_per_second>[\d.]+) updates/sec)?",
    ),
    LineRule("Validation-", r"Checkpoint \[\d+\]\s+Validation-", "validation"),
    LineRule("Training finished", r"Training finished", "end"),
)

JOEYNMT = format_of(
    "joeynmt",
    "JoeyNMT",
    LineRule("Batch Loss:", r"Epoch\s+\d+,? +Step:\s+(?P<step>\d+),? +Batch Loss:\s+(?P<loss>NUM)"),
    LineRule("Validation result", r"Validation result", "validation"),
)

OPENNMT = format_of(
    "opennmt",
    "OpenNMT",
    LineRule(" tok/s;", r"Step (?P<step>[\d,]+)/\s*(?P<total>[\d,]+); acc: .*tok/s;\s+(?P<elapsed_seconds>\d+) sec"),
    LineRule(
        "s elapsed",
        r"Epoch\s+(?P<epoch>\d+),\s+(?P<batch>\d+)/\s*(?P<batches>\d+); acc: .*?(?P<section_seconds>\d+) s elapsed",
    ),
    LineRule("; Iteration", r"Epoch (?P<epoch>\d+) ; Iteration (?P<batch>\d+)/(?P<batches>\d+) ;"),
    LineRule("Validation", r"Validation (?:perplexity|accuracy)", "validation"),
)

OPENNMT_TF = format_of(
    "opennmt_tf",
    "OpenNMT-tf",
    LineRule(
        "steps/s = ",
        r"Step = (?P<step>\d+) ; steps/s = (?P<steps_per_second>[\d.]+),.*?(?:Loss = (?P<loss>NUM))",
    ),
    LineRule("Running evaluation", r"Running evaluation", "validation"),
)

FLAIR = format_of(
    "flair",
    "Flair",
    LineRule(" - iter ", r"epoch (?P<epoch>\d+) - iter (?P<batch>\d+)/(?P<batches>\d+) - loss (?P<loss>NUM)"),
    LineRule("DEV :", r"\bDEV : ", "validation"),
    LineRule("max_epochs", r"max_epochs: \"?(?P<epochs>\d+)", "header"),
)

TACOTRON = format_of(
    "tacotron",
    "Tacotron",
    LineRule("Train loss ", r"^\W*Train loss (?P<step>\d+) (?P<loss>NUM) Grad Norm NUM (?P<step_seconds>[\d.]+)s/it"),
    LineRule("sec/step", r"Step (?P<step>\d+)\s+\[(?P<step_seconds>[\d.]+) sec/step, loss=(?P<loss>NUM)"),
)

COMPOSER = format_of(
    "composer",
    "Composer",
    LineRule(
        "[epoch=",
        r"\[epoch=(?P<epoch_index>\d+)(?:/(?P<epochs>\d+))?\]\[batch=(?P<batch>\d+)/(?P<batches>\d+)\]:",
    ),
    LineRule("[batch=", r"\[batch=(?P<step>\d+)/(?P<total>\d+)\]:"),
    sureness=0.9,
)

JAX = format_of(
    "jax",
    "JAX and Flax",
    LineRule(
        "completed step: ",
        r"completed step: (?P<index>\d+), seconds: (?P<step_seconds>[\d.]+)(?:.*?loss: (?P<loss>NUM))?",
    ),
    LineRule(
        "completed step: ",
        r"completed step: (?P<index>\d+), steps/s: (?P<steps_per_second>[\d.]+)(?:.*?loss: (?P<loss>NUM))?",
    ),
    LineRule(
        "work unit notes", r"notes: (?P<steps_per_second>[\d.]+) steps/s, [\d.]+% \((?P<step>\d+)/(?P<total>\d+)\), ETA"
    ),
    LineRule(
        "logging_writer",
        r"logging_writer\.py:\d+\] \[(?P<step>\d+)\] (?!.*(?:eval|test|val)_)(?:.*?\bloss=(?P<loss>NUM))?",
    ),
    LineRule("logging_writer", r"logging_writer\.py:\d+\] \[\d+\] .*(?:eval|test|val)_", "validation"),
    LineRule("train epoch: ", r"train epoch: (?P<epochs_done>\d+), loss: (?P<loss>NUM)"),
    LineRule("eval epoch: ", r"eval epoch: \d+", "validation"),
)

VERL = format_of(
    "verl",
    "verl",
    LineRule("timing_s/step:", r"step:(?P<step>\d+) - .*?\btiming_s/step:(?P<step_seconds>NUM)"),
    LineRule("val-core/", r"step:\d+ - (?:val|test)[-/]", "validation"),
)

FORMATS: tuple[Format, ...] = (
    VERL,
    MEGATRON,
    DEEPSPEED,
    DEEPSPEED_STEP,
    FAIRSEQ,
    FAIRSEQ_JSON,
    TORCHTITAN,
    NANOGPT,
    NANOCHAT,
    LITGPT,
    LLM_C,
    MODDED_NANOGPT,
    OLMO,
    NEMO,
    SOCKEYE,
    JOEYNMT,
    OPENNMT,
    OPENNMT_TF,
    FLAIR,
    TACOTRON,
    COMPOSER,
    JAX,
)
