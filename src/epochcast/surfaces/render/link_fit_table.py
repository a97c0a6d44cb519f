"""Latency and bandwidth fitted to measured collectives, and the errors of the fit."""

from collections.abc import Sequence

from rich.console import Group, RenderableType

from epochcast.measure.bench.link_fit import LinkFit
from epochcast.surfaces.render.table_parts import table
from epochcast.units import show_bytes, show_seconds


def links(fits: Sequence[LinkFit]) -> RenderableType:
    """α and B of each collective, then measured and fitted seconds of every size."""
    figures, residuals = [], []
    for fit in fits:
        name = f"{fit.backend} {fit.collective}, {fit.ranks} ranks"
        rate = f"{show_bytes(fit.bytes_per_second)}/s"
        figures.append((name, show_seconds(fit.latency_seconds), rate, f"{fit.error_fraction:.0%}"))
        for residual in fit.residuals:
            times = (show_seconds(residual.measured_seconds), show_seconds(residual.fitted_seconds))
            residuals.append((name, show_bytes(residual.size_bytes), *times, f"{residual.error_fraction:+.0%}"))
    return Group(
        table("ring of links", "collective | > latency | > bandwidth | > error", figures),
        table("measured and fitted", "collective | > size | > measured | > fitted | > error", residuals),
    )
