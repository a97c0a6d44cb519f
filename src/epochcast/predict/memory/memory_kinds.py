"""The three numbers that people quote as "the memory" of a training.

    allocated     bytes of live tensors: torch.cuda.max_memory_allocated
    reserved      what the allocator holds for them: torch.cuda.max_memory_reserved
    nvidia-smi    what the process holds of the device: reserved, and the context with its libraries

Each includes the one before it.
"""

ALLOCATED, RESERVED, ON_DEVICE = "allocated", "reserved", "nvidia-smi"
MEMORY_KINDS = (ALLOCATED, RESERVED, ON_DEVICE)
