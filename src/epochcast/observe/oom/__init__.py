"""Out of memory: what a message says, which part filled the card, and what would fit.

oom_message.py    the messages of PyTorch, JAX and TensorFlow, and where in the step they came
oom_diagnosis.py  the answer: parts, the one that filled the card, remedies
"""
