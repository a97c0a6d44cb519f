"""Words that several commands say about the same option."""

MODEL = "A zoo name, timm:NAME, torchvision:NAME, hf:CONFIG.json, file.py:factory, .onnx, .keras, .toml, .json"
DEVICE = "A name of `epochcast devices`; `local` is this host."
BATCH = "Samples per GPU and step."
INPUT = "Shape of one sample, like 3x224x224 (tokens: 512)."
NO_AUX = "Drop auxiliary heads."
