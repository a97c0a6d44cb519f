"""Front ends: torch, Keras, ONNX, Hugging Face, spec files and the built-in zoo, all ending in the same Trace."""
