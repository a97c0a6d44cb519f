"""Language models on 32 to 3,072 GPUs, against Megatron-LM's published figures."""
