"""Compilers of a training step, by name: what each fuses, and how the optimizer's update runs under it."""

from collections.abc import Mapping
from dataclasses import dataclass

from epochcast.errors import UnknownCompiler

EAGER = "none"


@dataclass(frozen=True, slots=True)
class Compiler:
    """`fuses_epilogues`: elementwise ops and copies beside another kernel are part of it. `compiles_update`: the whole
    update is one rule per tensor, not one pass over all tensors for every part of the rule. `turns_layout`: it stores
    images channels last where its rules say so (`inductor_layout`).
    """

    name: str
    fuses_epilogues: bool = False
    compiles_update: bool = False
    turns_layout: bool = False

    def update_style(self, style: str) -> str:
        """How the update runs where the user asked for `style`; a kernel per tensor is left to eager mode."""
        if self.compiles_update:
            return "fused"
        return "foreach" if style == "loop" else style


COMPILERS: Mapping[str, Compiler] = {
    compiler.name: compiler
    for compiler in (
        Compiler("inductor", turns_layout=True),
        Compiler("reduce-overhead", turns_layout=True),
        Compiler("xla", compiles_update=True),
        Compiler("vendor", fuses_epilogues=True, compiles_update=True, turns_layout=True),
    )
}
_ALIASES = {
    "eager": EAGER,
    "torch.compile": "inductor",
    "torch_compile": "inductor",
    "default": "inductor",
    "max-autotune": "reduce-overhead",
    "cudagraphs": "reduce-overhead",
    "cuda_graphs": "reduce-overhead",
    "reduce_overhead": "reduce-overhead",
    "openxla": "xla",
}


def find_compiler(name: str) -> str:
    """The name of a compiler, or of eager mode, as we call it."""
    wanted = name.strip().casefold()
    wanted = _ALIASES.get(wanted, wanted)
    if wanted != EAGER and wanted not in COMPILERS:
        raise UnknownCompiler(name, (EAGER, *COMPILERS))
    return wanted
