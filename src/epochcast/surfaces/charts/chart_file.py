"""Write a chart to a file. The file's ending decides the format; no file is ever half written."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from epochcast.base.atomic_files import write_bytes
from epochcast.errors import BadInput, MissingExtra

ENDINGS = (".png", ".svg", ".html")


def check_chart_path(path: Path) -> None:
    """Raise for a path that cannot be written to, before any work is done."""
    if path.suffix.lower() not in ENDINGS:
        raise BadInput(f"cannot draw {path.name}; known endings: {', '.join(ENDINGS)}")
    if not path.parent.is_dir():
        raise BadInput(f"no folder {str(path.parent)!r} to write {path.name} to")
    altair_module()


def save_chart(chart: Any, path: str | Path) -> None:
    """Write a chart as .png, .svg or .html; the page contains its scripts."""
    file = Path(path)
    check_chart_path(file)
    convert = converter()
    specification = chart.to_json()
    writers: Mapping[str, Callable[[], bytes]] = {
        ".png": lambda: convert.vegalite_to_png(specification, scale=2),
        ".svg": lambda: convert.vegalite_to_svg(specification).encode(),
        ".html": lambda: convert.vegalite_to_html(specification, bundle=True).encode(),
    }
    write_bytes(file, writers[file.suffix.lower()]())


def altair_module() -> Any:
    """The altair module, or an error that names the extra to install."""
    try:
        import altair
    except ModuleNotFoundError:
        raise MissingExtra("plot", "altair") from None
    return altair


def converter() -> Any:
    """The vl_convert module, or an error that names the extra to install."""
    try:
        import vl_convert
    except ModuleNotFoundError:
        raise MissingExtra("plot", "vl-convert-python") from None
    return vl_convert
