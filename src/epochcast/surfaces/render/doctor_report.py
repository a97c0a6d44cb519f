"""The report of `epochcast doctor`."""

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.observe.store.store_opening import Look
from epochcast.surfaces.doctor import DoctorReport, Extra, Folder, Package
from epochcast.surfaces.render.table_parts import table
from epochcast.units import show_bytes

MOST_PACKAGES = 8
"""An extra with more packages shows only the missing ones."""


def doctor(report: DoctorReport) -> RenderableType:
    """Packages, files, shipped numbers, and last the problems."""
    title = f"epochcast {report.version} on Python {report.python}"
    pieces: list[RenderableType] = []
    if report.extras:
        cells = [(extra.name, _packages(extra), extra.install or "complete") for extra in report.extras]
        pieces.append(table(title, "extra | packages | to complete it", cells))
    else:
        pieces.append(Text(f"{title}\n", style="bold"))
    if report.other_packages:
        others = ", ".join(f"{name} {version}" for name, version in report.other_packages.items())
        pieces.append(Text(f"also installed: {others}\n"))
    pieces.append(
        table(
            "your files",
            "what | where | > files | > size | from | to",
            map(_folder, report.folders),
            drop=("from", "to"),
        )
    )
    pieces.append(Text(f"job file: {report.job_file or 'none here or above'}\n"))
    pieces.append(Text(f"store of runs: {_store(report.store)}\n"))
    pieces.append(table("shipped with epochcast", "what | | dated", _shipped(report)))
    if report.blas_threads is not None:
        pieces.append(Text(f"numpy computes on {report.blas_threads} threads\n"))
    pieces.append(Text("problems" if report.problems else "no problems", style="bold"))
    pieces += [Text(f"  {problem}") for problem in report.problems]
    return Group(*pieces)


def _packages(extra: Extra) -> str:
    """torch 2.4.0, keras missing; of many packages only the missing ones."""
    shown = extra.packages if len(extra.packages) <= MOST_PACKAGES else extra.missing
    words = [f"{package.name} {_state(package)}" for package in shown]
    return ", ".join(words) or f"{len(extra.packages)} packages"


def _state(package: Package) -> str:
    if package.installed is None:
        return "missing"
    return package.installed if package.fits else f"{package.installed}, needs {package.wanted}"


def _folder(folder: Folder) -> tuple[str, ...]:
    if folder.path is None:
        return folder.what, "turned off", "", "", "", ""
    size = show_bytes(folder.size_bytes) if folder.files else ""
    return folder.what, folder.path, str(folder.files), size, folder.oldest or "", folder.newest or ""


def _store(store: Look) -> str:
    if not store.exists:
        return f"{store.database}, not made yet"
    size = "" if store.size_bytes is None else f", {show_bytes(store.size_bytes)}"
    return f"{store.database}{size}, tables {store.version or 'unknown'}"


def _shipped(report: DoctorReport) -> list[tuple[str, ...]]:
    prices = report.prices
    rows = [(f"cost model {m.file}", f"format {m.format}", m.trained or "unknown") for m in report.models]
    listed = f"{prices.instances} instances, {prices.recalled} not checked against the seller's"
    return [*rows, ("prices", listed, f"{prices.oldest} to {prices.newest}")]
