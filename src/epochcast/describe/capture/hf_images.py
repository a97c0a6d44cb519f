"""Images as tokens: how a vision-language model of transformers cuts an image, and how many tokens it becomes.

Each family follows its own processor (`processing_*.py`, `image_processing_*.py` of transformers):

    fixed size    LLaVA 1.5, PaliGemma, Gemma 3, InternVL     every image is resized; (size ÷ patch)² tokens, or fewer
    tiles         LLaVA-NeXT, OneVision     a grid of tiles that suits the image and the whole of it once; a token
                                            ends each row, tokens of padding are left out
    split         Idefics3, SmolVLM         enlarged to 4 tiles along its longer side, cut up, and the whole once
    own size      Qwen2-VL, 2.5, 3          the image's own size in patches; merged two by two, frames in pairs
    resampled     Idefics2                  64 tokens whatever the size
    beside        Llama 3.2, BLIP, GIT      read through cross-attention or a prefix: no tokens of the text's sequence

Of other families the tower itself says how many tokens an image becomes: it is run once (`_answered`).

An image that nobody described is as large as those of COCO, which the instruction data of these models is made of.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import ceil, floor, prod, sqrt
from typing import Any

from epochcast.describe.capture.sample_contents import SampleContents
from epochcast.errors import BadInput

COCO = (480, 640)
"""Height and width of most images of COCO (Lin et al. 2014)."""
# Qwen2VLImageProcessor: 56² to 28² · 1280 pixels; Qwen3-VL: 256² to 4096². Video frames: at most 768 · 28² pixels.
_QWEN_PIXELS = {"qwen3_vl": (65_536, 16_777_216), "qwen3_vl_moe": (65_536, 16_777_216)}
_QWEN2_PIXELS = (3_136, 1_003_520)
_FRAME_PIXELS = 602_112
# Tiles along the longer side of an image: size["longest_edge"] = 4 · 364 and 4 · 512 (image_processing_idefics3.py).
_SPLITS = 4
# ratio above which OneVision shrinks features, and tiles up to which it does not ("anyres_max_9").
_LEAST_RATIO, _MOST_TILES = 1.1, 9
# crop_to_patches of InternVL: at most so many tiles.
_INTERN_TILES = 12


@dataclass(frozen=True, slots=True)
class ImageTokens:
    """What the images of a sample are to a model: `pixels` is the shape of one image's tensor, `count` how many,
    `each` the tokens of one. `grid` is time, height and width in patches, where the model wants to know.
    """

    pixels: tuple[int, ...]
    count: int
    each: int
    text: str
    grid: tuple[int, int, int] | None = None

    @property
    def total(self) -> int:
        """Tokens of all images of a sample."""
        return self.count * self.each


@dataclass(frozen=True, slots=True)
class _Asked:
    size: tuple[int, int]
    frames: int | None
    count: int


def image_tokens(config: Any, contents: SampleContents, module: Any = None) -> ImageTokens | None:
    """The images of a sample; None where it has none. `module` is asked where its family's processor is not known."""
    count, *size = contents.images or (1, *_own_size(config))
    if count == 0:
        return None
    cut = _FAMILIES.get(config.model_type, _fixed)
    tokens = cut(config, _Asked((size[0], size[1]), contents.frames, count))
    if cut is _fixed and config.model_type not in _RESIZED:
        tokens = _answered(config, module, tokens)
    if contents.frames is not None and cut is _beside:
        raise BadInput(f"--frames: {config.model_type} takes no frames of a film; it takes --images")
    if contents.frames is not None and cut is not _at_own_size:
        count *= contents.frames
    films = f"{contents.frames} frames" if contents.frames is not None else f"{count} image{'s' * (count > 1)}"
    total = count * tokens.each
    text = f"{films} of {size[0]}x{size[1]}" + (f" ({total:,} tokens)" if total else " beside the text")
    return ImageTokens(tokens.pixels, count, tokens.each, text, tokens.grid)


def _own_size(config: Any) -> tuple[int, int]:
    """The size of an image that nobody described."""
    if _FAMILIES.get(config.model_type, _fixed) not in (_fixed, _beside):
        return COCO
    side = _fed_side(config)
    return side, side


def _fed_side(config: Any) -> int:
    """The side to which the processor of a family resizes its images."""
    return _SIDES.get(config.model_type) or _side(config.vision_config)


def _side(vision: Any) -> int:
    size = getattr(vision, "image_size", None) or 336
    return int(size if isinstance(size, int) else size[0])


def _patch(vision: Any) -> int:
    size = getattr(vision, "patch_size", None) or 14
    return int(size if isinstance(size, int) else size[0])


def _fixed(config: Any, _: _Asked) -> ImageTokens:
    """Resized to the tower's own size."""
    vision = config.vision_config
    side = _fed_side(config)
    patches = (side // _patch(vision)) ** 2
    is_whole = getattr(config, "vision_feature_select_strategy", "default") == "full"
    tokens = (
        getattr(config, "mm_tokens_per_image", None)
        or getattr(config, "num_query_tokens", None)
        or getattr(config, "image_seq_length", None)
        or patches + (is_whole and config.model_type == "llava")
    )
    return ImageTokens((3, side, side), 1, int(tokens), "")


def _answered(config: Any, module: Any, tokens: ImageTokens) -> ImageTokens:
    """Tokens of an image by what the tower makes of one; as they were where it takes more than an image."""
    import torch

    body = getattr(module, "model", module)
    text = getattr(config, "text_config", config)
    if not hasattr(body, "get_image_features"):
        return tokens
    try:
        with torch.no_grad():
            features = body.get_image_features(torch.empty((2, *tokens.pixels), device="meta"))
        features = getattr(features, "pooler_output", features)
        values = sum(part.numel() for part in features) if isinstance(features, list | tuple) else features.numel()
    except Exception:  # a tower that wants to know more; the capture says what is missing
        return tokens
    return replace(tokens, each=values // (2 * int(text.hidden_size)))


def _beside(config: Any, _: _Asked) -> ImageTokens:
    """Images that are no part of the text's sequence. Llama 3.2 pads each to its largest number of tiles."""
    side = _fed_side(config)
    tiles = (int(config.vision_config.max_num_tiles),) if config.model_type == "mllama" else ()
    return ImageTokens((*tiles, 3, side, side), 1, 0, "")


def _in_tiles(config: Any, asked: _Asked) -> ImageTokens:
    """A grid of tiles and the whole image (LLaVA-NeXT, LLaVA-OneVision, which cuts no image of several)."""
    side, patch = _side(config.vision_config), _patch(config.vision_config)
    row = side // patch
    is_one_vision, size = config.model_type == "llava_onevision", asked.size
    if asked.frames is not None:  # a frame is one tile, its features pooled two by two
        return ImageTokens((1, 3, side, side), 1, ceil(row / 2) ** 2, "")
    if is_one_vision and asked.count > 1:
        return ImageTokens((1, 3, side, side), 1, row**2 + 1, "")
    height, width = _best_grid(size, config.image_grid_pinpoints)
    tiles = (height // side) * (width // side)
    rows, columns = _without_padding(size, row * (height // side), row * (width // side))
    if is_one_vision:
        ratio = sqrt(rows * columns / (_MOST_TILES * row**2))
        if ratio > _LEAST_RATIO:
            rows, columns = int(rows // ratio), int(columns // ratio)
    return ImageTokens((tiles + 1, 3, side, side), 1, row**2 + rows * (columns + 1), "")


def _best_grid(size: tuple[int, int], grids: Any) -> tuple[int, int]:
    """The grid in which most of an image's pixels are kept and fewest are wasted (`select_best_resolution`)."""

    def merit(grid: Any) -> tuple[int, int]:
        scale = min(grid[0] / size[0], grid[1] / size[1])
        kept = min(int(size[0] * scale) * int(size[1] * scale), size[0] * size[1])
        return kept, kept - prod(grid)

    height, width = max(grids, key=merit)
    return int(height), int(width)


def _without_padding(size: tuple[int, int], rows: int, columns: int) -> tuple[int, int]:
    """Rows and columns of features that hold the image, which keeps its shape."""
    if size[1] / size[0] > columns / rows:
        return rows - (rows - int(round(size[0] * columns / size[1], 7))) // 2 * 2, columns
    return rows, columns - (columns - int(round(size[1] * rows / size[0], 7))) // 2 * 2


def _split(config: Any, asked: _Asked) -> ImageTokens:
    """Enlarged, cut into tiles, and the whole image (Idefics3, SmolVLM); frames of a film are not cut."""
    vision = config.vision_config
    side = _side(vision)
    each = (side // _patch(vision)) ** 2 // config.scale_factor**2
    tiles = 1
    if asked.frames is None:
        scale = _SPLITS * side / max(asked.size)
        tiles += prod(ceil(round(length * scale) / side) for length in asked.size)
    return ImageTokens((tiles, 3, side, side), 1, tiles * each, "")


def _resampled(config: Any, asked: _Asked) -> ImageTokens:
    """Idefics2: of its own size, at most that of the tower, read into a fixed number of tokens."""
    patch, longest = _patch(config.vision_config), _side(config.vision_config)
    scale = min(1.0, longest / max(asked.size))
    height, width = (max(patch, int(length * scale) // patch * patch) for length in asked.size)
    return ImageTokens((1, 3, height, width), 1, int(config.perceiver_config.resampler_n_latents), "")


def _cropped(config: Any, asked: _Asked) -> ImageTokens:
    """InternVL: up to 12 tiles in the shape of the image, as many as its pixels half fill; several have the whole
    image beside them (`get_optimal_tiled_canvas`).
    """
    tokens = _fixed(config, asked)
    if asked.frames is not None:
        return tokens
    side, (height, width) = tokens.pixels[1], asked.size
    grids = [(h, w) for h in range(1, _INTERN_TILES + 1) for w in range(1, _INTERN_TILES // h + 1)]

    def merit(grid: tuple[int, int]) -> tuple[float, int]:
        rows, columns = grid
        is_filled = height * width > 0.5 * side**2 * rows * columns
        return abs(columns / rows - width / height), -rows * columns if is_filled else rows * columns

    rows, columns = min(grids, key=merit)
    tiles = rows * columns
    tiles += tiles > 1
    return ImageTokens((tiles, *tokens.pixels), 1, tiles * tokens.each, "")


def _at_own_size(config: Any, asked: _Asked) -> ImageTokens:
    """Qwen2-VL and its successors: sides in whole patches, within bounds of pixels (`smart_resize`)."""
    vision = config.vision_config
    patch, merge = _patch(vision), int(vision.spatial_merge_size)
    least, most = _QWEN_PIXELS.get(config.model_type, _QWEN2_PIXELS)
    most = most if asked.frames is None else min(most, _FRAME_PIXELS)
    height, width = _resized(asked.size, patch * merge, least, most)
    together = int(vision.temporal_patch_size)
    grid = (ceil((asked.frames or 1) / together), height // patch, width // patch)
    values = int(getattr(vision, "in_channels", 3)) * together * patch**2
    return ImageTokens((prod(grid), values), 1, prod(grid) // merge**2, "", grid)


def _resized(size: tuple[int, int], factor: int, least: int, most: int) -> tuple[int, int]:
    if min(size) < 1:
        raise BadInput(f"an image has sides of at least 1, got {size[0]}x{size[1]}")
    sides = tuple(max(factor, round(length / factor) * factor) for length in size)
    if prod(sides) > most:
        shrink = sqrt(prod(size) / most)
        sides = tuple(max(factor, floor(length / shrink / factor) * factor) for length in size)
    elif prod(sides) < least:
        grow = sqrt(least / prod(size))
        sides = tuple(ceil(length * grow / factor) * factor for length in size)
    return sides[0], sides[1]


_Cut = Callable[[Any, _Asked], ImageTokens]
_FAMILIES: Mapping[str, _Cut] = {
    "llava_next": _in_tiles,
    "llava_next_video": _in_tiles,
    "llava_onevision": _in_tiles,
    "mllama": _beside,
    "blip": _beside,
    "git": _beside,
    "idefics2": _resampled,
    "idefics3": _split,
    "smolvlm": _split,
    "internvl": _cropped,
    "qwen2_vl": _at_own_size,
    "qwen2_5_vl": _at_own_size,
    "qwen3_vl": _at_own_size,
    "qwen3_vl_moe": _at_own_size,
}
"""How a family cuts images, by its model_type; others resize them."""
_RESIZED = ("llava", "vipllava", "video_llava", "paligemma", "gemma3", "blip-2", "instructblip", "deepseek_vl")
"""Families of one size whose tokens their configuration tells."""
_SIDES = {"florence2": 768, "gemma3n": 768}
"""Sides of images whose vision configuration names none (Florence2Processor, Gemma3nProcessor)."""
