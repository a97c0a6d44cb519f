"""Writing a chart. The ending of the file decides the format; a file appears whole or not at all."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from epochcast.atomic import write_bytes
from epochcast.errors import BadInput, MissingExtra

ENDINGS = (".png", ".svg", ".html")


def check_chart_path(path: Path) -> None:
    """Refuse a place we could not write to, before any work is done for it."""
    if path.suffix.lower() not in ENDINGS:
        raise BadInput(f"cannot draw {path.name}; known endings: {', '.join(ENDINGS)}")
    if not path.parent.is_dir():
        raise BadInput(f"no folder {str(path.parent)!r} to write {path.name} to")
    altair_module()


def save_chart(chart: Any, path: str | Path) -> None:
    """Write a chart as .png, .svg or .html; the page carries its scripts with it."""
    file = Path(path)
    check_chart_path(file)
    convert = _converter()
    description = chart.to_json()
    makers: Mapping[str, Callable[[], bytes]] = {
        ".png": lambda: convert.vegalite_to_png(description, scale=2),
        ".svg": lambda: convert.vegalite_to_svg(description).encode(),
        ".html": lambda: convert.vegalite_to_html(description, bundle=True).encode(),
    }
    write_bytes(file, makers[file.suffix.lower()]())


def altair_module() -> Any:
    """altair, or the name of the extra that brings it."""
    try:
        import altair
    except ModuleNotFoundError:
        raise MissingExtra("plot", "altair") from None
    return altair


def _converter() -> Any:
    try:
        import vl_convert
    except ModuleNotFoundError:
        raise MissingExtra("plot", "vl-convert-python") from None
    return vl_convert
