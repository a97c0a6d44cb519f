"""Vega, Vega-Lite and their embedding as one script, out of vl-convert: nothing comes from elsewhere.

`python -m epochcast.surfaces.web.chart_bundle` writes it to standard output.
"""

import sys

from epochcast.surfaces.charts.chart_file import converter


def main() -> None:
    """Write the bundle."""
    bundle = str(converter().javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    sys.stdout.buffer.write(bundle.encode())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
