"""Formats in which an inference engine stores weights and cache, and multiplies.

Bytes per value include the scales of a format: int4 has a 16-bit scale and a 4-bit zero for each 128 values (GPTQ and
AWQ), fp4 an 8-bit scale for each 16 (NVFP4), int8 and fp8 one for each row.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from epochcast.errors import UnknownName
from epochcast.hardware.device import Device


@dataclass(frozen=True, slots=True)
class DecodeFormat:
    """Bytes of a stored weight, and the math of products on devices that have it; others widen to bf16 or fp16."""

    name: str
    bytes_per_value: float
    math: str
    is_quantised: bool = False

    def math_on(self, device: Device) -> str:
        """The math that products run in."""
        if self.math in device.peak_flops_per_second:
            return self.math
        return next((each for each in ("bf16", "fp16") if each in device.peak_flops_per_second), "fp32")


FORMATS: Mapping[str, DecodeFormat] = {
    each.name: each
    for each in (
        DecodeFormat("bf16", 2.0, "bf16"),
        DecodeFormat("fp16", 2.0, "fp16"),
        DecodeFormat("fp32", 4.0, "fp32"),
        DecodeFormat("fp8", 1.0, "fp8", is_quantised=True),
        DecodeFormat("int8", 1.0, "bf16", is_quantised=True),
        DecodeFormat("int4", 0.5 + (2 + 0.5) / 128, "bf16", is_quantised=True),
        DecodeFormat("fp4", 0.5 + 1 / 16, "fp4", is_quantised=True),
    )
}
CACHE_FORMATS = ("bf16", "fp16", "fp8")


def decode_format(name: str) -> DecodeFormat:
    """The format of a name."""
    if name not in FORMATS:
        raise UnknownName("format of weights", name, FORMATS)
    return FORMATS[name]
