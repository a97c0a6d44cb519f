"""Words that several commands say about the same option."""

MODEL = "A zoo name, timm:NAME, torchvision:NAME, hf:CONFIG.json, file.py:factory, .onnx, .keras, .toml, .json"
DEVICE = "A name of `epochcast devices`; `local` is this host."
STRATEGY = (
    "ddp (default), horovod, mirrored, multi_worker_mirrored, parameter_server[:N], data_parallel, zero1, zero2, "
    "zero3, fsdp, model, hybrid, tensor, pipeline[:gpipe], or a product like dp8,tp4,pp2."
)
BATCH = "Samples per GPU and step."
INPUT = "Shape of one sample, like 3x224x224 (tokens: 512)."
UNEVEN = (
    "By how much of its work one batch differs from the next, like 0.35, or sides of images drawn anew for each, like "
    "320..608: several GPUs wait for the largest."
)
NO_AUX = "Drop auxiliary heads."
LOADER_SECONDS = "Seconds one loader worker needs for one sample, like 8ms; for a batch with its size: 0.5s/64."
CPUS = "Processors of a box; each GPU keeps one busy."

ATTENTION = "flash (one fused kernel) or eager (scores in memory)."
UPDATE_STYLE = "foreach, fused or loop (a kernel per tensor)."
CHECKPOINTING = "Every block runs again in backward."
