"""A browser for tests of pages: tabs that fail their test where a script fails, pictures that are kept."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.surfaces.web.conftest import Served

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
SHOTS = Path(os.environ.get("EPOCHCAST_SHOTS", "build/screenshots"))
# The machine may be busy.
WAIT = 60_000


@contextmanager
def launched() -> Iterator[Any]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield browser
        browser.close()


@contextmanager
def opened_tab(browser: Any, name: str, width: int = 1280, height: int = 900, theme: str = "light") -> Iterator[Any]:
    """A tab whose scripts must not fail, and which the content policy must not stop; its last picture is kept."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    tab = context.new_page()
    tab.set_default_timeout(WAIT)
    faults: list[str] = []
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("console", lambda said: faults.append(said.text) if "Content Security Policy" in said.text else None)
    yield tab
    picture(tab, name)
    context.close()
    assert faults == []


def picture(tab: Any, name: str) -> None:
    """Keep what a tab shows."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    tab.screenshot(path=str(SHOTS / f"{name}.png".replace("/", "-")), full_page=True)


def value_of(page: Any, name: str, before: str = "…") -> str:
    """The text of a number, once there is one, and another than before."""
    from playwright.sync_api import expect

    expect(page.locator(f"#{name}")).not_to_have_text(re.compile(f"^(…|–||{re.escape(before)})$"), timeout=WAIT)
    return str(page.inner_text(f"#{name}"))


def says(page: Any, name: str, text: str) -> None:
    """Wait until an element says something."""
    from playwright.sync_api import expect

    expect(page.locator(f"#{name}")).to_contain_text(text, timeout=WAIT)


def report(served: Served, job: str, first: int = 1, count: int = 8) -> None:
    """Some reports of a run."""
    start = {"job": job, "attempt": 1, "at": 1_763_370_000.0, "total_steps": 100_000}
    rows = [
        {"ec": "train", "step": 10 * n, "at": 1_763_370_000.0 + n, "steps": 10, "step_seconds": 0.1, "loss": 2.0}
        for n in range(first, first + count)
    ]
    served.client.post("/api/v1/observations", json={"start": start, "observations": rows}).raise_for_status()


def log_in(page: Any, token: str) -> None:
    """Type a token and send it."""
    page.fill("#token", token)
    page.click("text=Log in >> nth=-1")
