"""Diffusion models as their trainers name them: a Hub id, a file of weights, a family; and pictures as latents.

An autoencoder makes each 8×8 pixels one position of a latent: of 4 channels in Stable Diffusion 1 to XL.
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from epochcast.describe.capture.config.key_table import stated
from epochcast.describe.capture.config.setting import Reader
from epochcast.describe.capture.diffusers_models import diffusers_name, diffusion_model_of, is_picture_model
from epochcast.describe.capture.model_reference import DIFFUSERS
from epochcast.describe.capture.sample_contents import ALL, PICTURES, TEXT

PIXELS = 8
"""Of a side, per position of a latent."""
UNET_ADAPTED = ("to_q", "to_k", "to_v", "0", "proj", "2")
"""Linear layers of a U-Net's transformers by their last names (`to_out.0`, `ff.net.0.proj`, `ff.net.2`)."""
ATTENTION_ADAPTED = ("to_q", "to_k", "to_v", "0")
"""Those of attention alone, where diffusers' examples and SimpleTuner put adapters."""

_UNETS: Mapping[str, str] = {
    "sd1.5": "stable-diffusion-v1-5/stable-diffusion-v1-5",
    "sd1x": "stable-diffusion-v1-5/stable-diffusion-v1-5",
    "sd2": "stabilityai/stable-diffusion-2-1",
    "sd2x": "stabilityai/stable-diffusion-2-1",
    "sdxl": "stabilityai/stable-diffusion-xl-base-1.0",
}
FAMILIES: Mapping[str, str] = {
    **_UNETS,
    "sd3": "diffusers:sd3-medium",
    "flux": "diffusers:flux1-dev",
    "pixart_sigma": "diffusers:pixart-sigma",
    "sana": "diffusers:sana-1.6b",
    "ltxvideo": "diffusers:ltx-video",
    "wan": "diffusers:wan2.1-1.3b",
    "auraflow": "diffusers:auraflow",
    "cosmos2image": "diffusers:cosmos-predict2-2b",
}
"""The published model of a family."""
_UNET_IDS = (
    *("runwayml/stable-diffusion-v1-5", "CompVis/stable-diffusion-v1-4", "stabilityai/stable-diffusion-2"),
    *("sd15_unet", "sd21_unet", "sdxl_unet", "sdxl", "sd1.5"),
)
_WEIGHTS = (".safetensors", ".ckpt", ".pt", ".pth", ".bin")
# Beginnings and parts of file names under which versions of a family go round.
_OF_SDXL = ("xl", "pony", "illustrious", "noobai", "animagine")
_LATENT_CHANNELS = 4
_TRAINER = "diffusion_trainer"
"""The host of trainings of U-Nets; networks of diffusers have their own."""


def diffusion_model(written: str, family: str) -> tuple[str, str]:
    """The model that is meant, and what to tell of it: weights in a file have the sizes of their family's model."""
    is_file = written.casefold().endswith(_WEIGHTS) or not written
    if not is_file:
        network = diffusers_name(written)
        return (f"{DIFFUSERS}:{network}" if network else written), ""
    name = PurePosixPath(written.replace("\\", "/")).name
    if not family and any(part in name.casefold() for part in _OF_SDXL):
        family = "sdxl"
    if family in FAMILIES:
        return FAMILIES[family], f"{name or family} is taken as {FAMILIES[family]}; give MODEL for another"
    return written, ""


def set_pictures(reader: Reader, resolution: Any, key: str) -> None:
    """A resolution (1024, "768,512", [768, 512]) as the shape of a latent of a U-Net, or in pixels for a network of
    diffusers. A U-Net's kernels are launched by its trainer's host.
    """
    model = str(stated(reader, "model") or "")
    is_unet = model in (*_UNETS.values(), *_UNET_IDS)
    if is_unet and stated(reader, "host_class") is None:
        reader.set("host_class", _TRAINER, "default", is_default=True)
    sides = _sides(resolution)
    if sides is None:
        return
    width, height = sides
    if is_unet:
        reader.set("input_shape", (_LATENT_CHANNELS, height // PIXELS, width // PIXELS), key)
    elif model.startswith("diffusers:"):
        reader.set("input_shape", (3, height, width), key)
    else:
        reader.leave(key, f"{width}x{height} pixels: give `input_shape`")


def set_encoders(reader: Reader, *, text: str = "", pictures: str = "") -> None:
    """Frozen encoders that run in every step, each with the setting that would save it; empty where it is cached."""
    kind = diffusion_model_of(str(stated(reader, "model") or ""))
    runs = {TEXT: bool(text and kind and kind.encoders), PICTURES: bool(pictures and kind and is_picture_model(kind))}
    for name, each, key in (("text encoder", TEXT, text), ("autoencoder", PICTURES, pictures)):
        if key and not runs[each]:
            reader.leave(name, f"its forward pass of each step; {key} saves it")
    which = ALL if all(runs.values()) else next((each for each, does_run in runs.items() if does_run), "")
    if which:
        reader.set("encoders", which, " and ".join(filter(None, (text, pictures))), is_default=True)


def _sides(resolution: Any) -> tuple[int, int] | None:
    if isinstance(resolution, str):
        parts: Sequence[Any] = [part for part in resolution.replace("x", ",").split(",") if part.strip()]
    else:
        parts = resolution if isinstance(resolution, list) else [resolution]
    try:
        numbers = [int(float(part)) for part in parts if part is not None]
    except (TypeError, ValueError):
        return None
    if not numbers or min(numbers) < PIXELS:
        return None
    return numbers[0], numbers[-1]
