"""Is this speed normal? An observation of a run against the forecast of its job, and the likeliest causes.

observation.py      what somebody saw, in seconds per step, sample, token, epoch or job
observed_rate.py    typed: "39s/it", "2.1k tokens/s"
observed_log.py     a log or a pasted bar, by the parsers of `observe.logs`
observed_process.py a running process: its command line, its log, NVML's readings
kineto_trace.py     a trace of torch.profiler
observe.runs.speed_verdict    the factor against the forecast, and the verdict
*_causes.py         one module per family of causes
speed_check.py      the answer
"""
