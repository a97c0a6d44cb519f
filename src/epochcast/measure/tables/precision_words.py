"""The precision of a row, from the many ways to write it: the format of products, the storage of the weights, and the
quantisation of a frozen base.

    fp16-true, bf16-mixed, amp_fp8                     a format, stored in it (true) or cast op by op (mixed, amp)
    fp16 O2                                            level 2 of apex and Paddle: half, with a float32 copy
    fp32 (TF32 matmul on in the script)                a format, with what was switched on in brackets
    amp_bf16 weights bf16                              the weights are kept in another format than AMP's float32
    amp_fp16 quant=int4 (GPTQ), bf16 base quant=fp8-torchao, bf16-true quant=bnb.nf4-dq     a quantised base

Words of `row_names.toml` come first. A text without a format is left as it is; the job refuses it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from epochcast.describe.graph.quantised_base import EIGHT, FOUR
from epochcast.measure.tables.row_names import listed, row_names

_QUANTISED = re.compile(r"(?:\bbase )?\bquant=(?P<kind>[\w.\-]+)(?:\s*\((?P<library>[^)]*)\))?", re.IGNORECASE)
_WEIGHTS = re.compile(r"\bweights (?:in )?(?P<weights>fp16|bf16|fp32)\b", re.IGNORECASE)
_FORMAT = re.compile(
    r"(?P<amp>amp[_ -]?)?(?<![a-z0-9])(?P<format>mxfp8|nvfp4|fp8|bf16|bfloat16|fp16|float16|tf32|fp32|float32|fp64)"
    r"(?:[ _-]?(?P<how>true|mixed|amp|o[0-3]))?(?![a-z0-9])"
)
_SHORT: Mapping[str, str] = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_HALF = ("fp16", "bf16")
_GROUPED = ("gptq", "awq")
_OTHERS = {
    "sdnq": "sdnq",
    "fp8-torchao": "fp8",
    **dict.fromkeys(("fp8wo", "int8wo", "quanto", "weight-only", "weight only", "eetq", "hqq"), "w8"),
}
_BITSANDBYTES = ("bnb", "bitsandbytes", "nf4", "qlora")


@dataclass(frozen=True, slots=True)
class Quantisation:
    """A frozen base in few bits, as the row writes it; None where it does not say how many."""

    bits: int | None
    words: str

    @property
    def base(self) -> str | None:
        """The format by our name; None for one that nobody here knows."""
        words = self.words.casefold()
        if self.bits == FOUR and any(name in words for name in _GROUPED):
            return next(name for name in _GROUPED if name in words)
        named = next((base for name, base in _OTHERS.items() if name in words), None)
        if self.bits == EIGHT and (named or any(name in words for name in _GROUPED)):
            return named or "w8"
        if not any(name in words for name in _BITSANDBYTES):
            return None
        if self.bits == EIGHT:
            return "int8"
        return ("nf4-dq" if words.endswith("dq") else "nf4") if self.bits == FOUR else None


@dataclass(frozen=True, slots=True)
class NamedPrecision:
    """A precision by our name, the storage of the weights where it differs, and the quantisation of the base."""

    name: str
    weights: str | None = None
    quantisation: Quantisation | None = None


def named_precision(source: str, words: str) -> NamedPrecision:
    """The precision of a cell."""
    by_words: Mapping[str, str] = row_names()["source_precision"].get(source, {})
    if words in by_words:
        return NamedPrecision(by_words[words])
    weights = _WEIGHTS.search(words)
    base = _WEIGHTS.sub("", _QUANTISED.sub("", words)).strip()
    name, level_weights = _base(base)
    return NamedPrecision(name, weights["weights"].casefold() if weights else level_weights, quantisation(words))


def quantisation(words: str) -> Quantisation | None:
    """What `quant=` says; None where nothing is quantised."""
    match = _QUANTISED.search(words)
    if match is None or match["kind"].casefold() == "none":
        return None
    bits = next((bits for bits in (EIGHT, FOUR) if str(bits) in match["kind"]), None)
    library = f" ({match['library']})" if match["library"] else ""
    return Quantisation(bits, match["kind"] + library)


def _base(words: str) -> tuple[str, str | None]:
    """The name of a precision and the storage of its weights; words without a format are left as they are."""
    name = listed("precision", words)
    if name is not None:
        return name, None
    lower = words.casefold()
    outside, brackets = re.sub(r"\([^)]*\)", " ", lower), " ".join(re.findall(r"\(([^)]*)\)", lower))
    match = _FORMAT.search(outside)
    if match is None or _FORMAT.sub("", outside).strip(" ,;") not in ("", "tensorwise", "rowwise"):
        return words, None
    name, how = _SHORT.get(match["format"], match["format"]), match["how"] or ""
    if name == "fp32" and "tf32 matmul" in brackets:
        return "tf32", None
    if name in _HALF and how == "o2":
        return f"amp_{name}", f"{name}+master"
    if name in _HALF and (match["amp"] or how in ("mixed", "amp", "o1")):
        return f"amp_{name}", None
    return ("fp32" if how == "o0" else name), name if name in _HALF and how == "true" else None
