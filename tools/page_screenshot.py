"""docs/page.png: the local page over a made-up memory, in Chromium.

    PYTHONPATH=src:tools python tools/page_screenshot.py [--to docs/page.png] [--theme dark] [--width 1400]

Needs `memsift[dev]` and a Chromium that is installed already; nothing is downloaded.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import page_demo
import uvicorn
from playwright.sync_api import sync_playwright
from starlette.applications import Starlette

from memsift.agent import AgentMemory
from memsift.server.page import routes

ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@contextmanager
def served(memory: AgentMemory) -> Iterator[str]:
    """The page alone, read-only, on a free port."""
    app = Starlette(routes=routes(memory, may_write=lambda request: False))
    config = uvicorn.Config(app, port=0, log_level="error", access_log=False)
    server, socket = uvicorn.Server(config), config.bind_socket()
    thread = threading.Thread(target=server.run, args=([socket],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()


def pose(page: Any) -> None:
    """What the picture shows: a victim with its reasons, and a chain that was looked at."""
    page.wait_for_selector("html[data-ready]")
    page.get_by_role("button", name="Verify").click()
    page.wait_for_selector("#verdict.unproven")
    page.locator("#victims").get_by_role("button", name="Why").nth(1).click()
    page.wait_for_selector("#detail .facts")
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.wait_for_timeout(300)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=Path(__file__).parents[1] / "docs" / "page.png")
    parser.add_argument("--theme", choices=["light", "dark"], default="light")
    parser.add_argument("--width", type=int, default=1400)
    parser.add_argument("--height", type=int, default=926, help="0 shows the whole page.")
    asked = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("a Chromium must be installed; none was found")
    with (
        tempfile.TemporaryDirectory() as folder,
        page_demo.build(Path(folder) / "demo.memsift") as memory,
        served(memory) as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        size = {"width": asked.width, "height": asked.height or 1000}
        page = browser.new_page(viewport=size, color_scheme=asked.theme)
        page.goto(address)
        pose(page)
        page.screenshot(path=asked.to, full_page=asked.height == 0)
        browser.close()
    print(f"{asked.to}: {asked.to.stat().st_size / 1000:,.0f} KB")


if __name__ == "__main__":
    main()
