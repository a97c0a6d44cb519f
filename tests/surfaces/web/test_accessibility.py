"""Every page at four widths, light and dark: axe-core finds nothing serious, nothing is wider than the window.

The pictures are kept, named PAGE-WIDTH-THEME.png.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.surfaces.web.browser import CHROMIUM, SHOTS, WAIT, launched, opened_tab
from tests.surfaces.web.conftest import Served

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here; `make test` installs it where it can")

WIDTHS, THEMES = (390, 820, 1400, 1920), ("light", "dark")
# Of each page its address, and what is there when it is ready.
PAGES = {
    "forecast": ("/", "#plan canvas"),
    "plan": ("/plan", "#map canvas"),
    "diff": ("/diff", "#layers tbody tr"),
    "check": ("/check?model=resnet50&device=V100&batch=64&observed=2s/it", "#causes tbody tr"),
    "runs": ("/runs", "#runs tbody tr"),
    "run": ("/runs/vit-stalled", "#loss canvas"),
    "compare": ("/compare?run=vit-stalled&run=imagenet-a100", "#chart canvas"),
    "queue": ("/queue", "#gantt canvas"),
    "history": ("/history", "#ask"),
    "accuracy": ("/accuracy", "#errors canvas"),
    "tokens": ("/tokens", "#tokens p"),
    "login": ("/login", "#token"),
    "fault": ("/nothere", ".fault"),
}


@pytest.fixture(scope="module")
def demo() -> Iterator[Served]:
    served = Served("--demo")
    yield served
    served.end()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_fits_at_every_width_in_both_themes(browser: Any, demo: Served, name: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    path, ready = PAGES[name]
    faults = []
    for theme in THEMES:
        with opened_tab(browser, f"{name}-{WIDTHS[-1]}-{theme}", WIDTHS[-1], 900, theme) as tab:
            tab.goto(demo.url + path)
            tab.wait_for_selector(ready, timeout=2 * WAIT)
            tab.wait_for_function("() => document.querySelectorAll('.stale').length === 0", timeout=WAIT)
            for width in reversed(WIDTHS):
                tab.set_viewport_size({"width": width, "height": 900})
                tab.wait_for_timeout(1_000)
                tab.screenshot(path=shot(f"{name}-{width}-{theme}"), full_page=True)
                if tab.evaluate("document.documentElement.scrollWidth") > width:
                    faults.append(f"{width} {theme}: wider than the window")
            for width in (WIDTHS[0], WIDTHS[-1]):
                tab.set_viewport_size({"width": width, "height": 900})
                faults += serious(Axe().run(tab).response, f"{width} {theme}")
    assert faults == []


def shot(name: str) -> str:
    SHOTS.mkdir(parents=True, exist_ok=True)
    return str(SHOTS / f"{name}.png")


def serious(found: Any, where: str) -> list[str]:
    """What axe-core calls serious or critical, with the first element of each."""
    return [
        f"{where}: {rule['id']}: {rule['nodes'][0]['html'][:150]}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
    ]
