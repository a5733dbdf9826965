"""JupyterLab and a browser for the tests: a server of its own, the built extension, chromium; pictures go to out/screenshots."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
from playwright.sync_api import Error, Locator, Page, sync_playwright

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "out" / "screenshots"
BUNDLE = ROOT / "cute_lab" / "labextension"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
REQUIRED = "CUTE_LAB_BROWSER"  # continuous integration sets it: there, a missing browser is a failure
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}


class Server:
    """A JupyterLab or Notebook 7 server; its settings, data and trust are in `home` alone."""

    def __init__(self, home: Path, root: Path, python: str = sys.executable, app: str = "lab", extension: Path | None = BUNDLE) -> None:
        self.root, self.app = root, app
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.runtime = tempfile.mkdtemp(prefix="cute-")  # short: it holds sockets, whose names have at most 107 characters
        folders = {"JUPYTER_RUNTIME_DIR": self.runtime, **{f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "DATA")}}
        environment = {**os.environ, **folders, "PYTHONPATH": str(ROOT), "JUPYTERLAB_SETTINGS_DIR": str(home / "settings")}
        environment |= {"IPYTHONDIR": str(home / "ipython"), "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces")}
        if extension is not None:
            place = home / "share" / "labextensions"
            place.mkdir(parents=True)
            (place / "cute-lab").symlink_to(extension)
            environment["JUPYTER_PATH"] = str(home / "share")
        self.settings = home / "settings"
        quiet = self.settings / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
        quiet.parent.mkdir(parents=True, exist_ok=True)
        quiet.write_text('{"fetchNews": "false", "checkForUpdates": false}')  # no question about news
        self.log = (home / "server.log").open("w")
        options = ["--no-browser", "--allow-root", f"--port={self.port}", "--ServerApp.port_retries=0", "--IdentityProvider.token="]
        options += ["--ServerApp.password=", "--ServerApp.disable_check_xsrf=True", f"--ServerApp.root_dir={root}"]
        options += ["--LabApp.expose_app_in_browser=True", "--KernelManager.transport=ipc"] if app == "lab" else []
        command = [python, "-m", "jupyterlab" if app == "lab" else "notebook", *options]
        self.process = subprocess.Popen(command, env=environment, cwd=root, stdout=self.log, stderr=subprocess.STDOUT)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/api/status", timeout=2):
                return
            assert self.process.poll() is None, (home / "server.log").read_text()[-3000:]
            time.sleep(0.1)
        raise AssertionError(f"the server did not start: {(home / 'server.log').read_text()[-3000:]}")

    def theme(self, name: str) -> None:
        """For the next page."""
        self.set("@jupyterlab/apputils-extension:themes", theme=THEMES[name])

    def set(self, plugin: str, **values: Any) -> None:
        body = json.dumps({"raw": json.dumps(values)}).encode()
        request = urllib.request.Request(f"{self.url}/lab/api/settings/{plugin}", data=body, method="PUT")
        urllib.request.urlopen(request, timeout=10).close()

    def close(self) -> None:
        self.process.kill()  # kernels end with it by themselves; asked politely, it waits for them one by one
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.runtime, ignore_errors=True)


class Seen:
    """What a page did that nobody should see: errors of ours on its console, requests to other machines."""

    def __init__(self, page: Page) -> None:
        self.errors: list[str] = []
        self.outside: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        page.on("request", lambda request: self._request(request.url))

    def _request(self, url: str) -> None:
        parts = urlparse(url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname not in ("127.0.0.1", "localhost"):
            self.outside.append(url)

    @property
    def of_ours(self) -> list[str]:
        return [error for error in self.errors if "ute" in error]


def reach(place: Locator) -> None:
    """Scrolls there. A notebook draws a cell anew while it settles, and playwright gives up on the one that it has measured."""
    for last in (False, False, False, True):
        try:
            place.scroll_into_view_if_needed()
            return
        except Error as error:
            if last or "not attached" not in str(error):
                raise


@pytest.fixture(scope="session")
def chromium_path() -> str:
    if CHROMIUM is None and not os.environ.get(REQUIRED):
        pytest.skip("no chromium on this machine: `apt install chromium`")
    assert CHROMIUM, "chromium is missing"
    return CHROMIUM


@pytest.fixture(scope="session")
def chromium(chromium_path: str) -> Iterator[Any]:
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium_path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1280, "height": 1400}, permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    yield page
    context.close()


def picture(page: Page, name: str) -> Path:
    PICTURES.mkdir(parents=True, exist_ok=True)
    path = PICTURES / f"{name}.png"
    page.screenshot(path=path)
    return path


def open_notebook(page: Page, server: Server, name: str) -> None:
    """With the file browser folded away and no question asked."""
    place = "lab/tree" if server.app == "lab" else "notebooks"
    page.goto(f"{server.url}/{place}/{name}" + ("?reset" if server.app == "lab" else ""), wait_until="domcontentloaded")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
    if server.app == "lab":
        page.evaluate("window.jupyterapp.restored.then(() => window.jupyterapp.commands.execute('application:toggle-left-area'))")


# -- in the page ----------------------------------------------------------------------------------------------------------
# Milliseconds from the click on the tab Mask until the canvas has more colours than paper, frame and ink; -1: never.
PAINTED = """async () => {
    const start = performance.now();
    [...document.querySelectorAll('.jp-Cute-card [role=tab]')].find(t => t.textContent === 'Mask').click();
    for (;;) {
        await new Promise(requestAnimationFrame);
        const canvas = document.querySelector('.jp-CuteMask canvas');
        if (canvas && canvas.width > 100) {
            const colours = new Set(new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer));
            if (colours.size > 3) { return performance.now() - start; }
        }
        if (performance.now() - start > 20000) { return -1; }
    }
}"""
# Milliseconds of each frame while the wheel zooms in and out.
FRAMES = """async (steps) => {
    const canvas = document.querySelector('.jp-CuteMask canvas');
    canvas.focus();
    const box = canvas.getBoundingClientRect(), times = [];
    let last = await new Promise(requestAnimationFrame);
    for (let i = 0; i < steps; i++) {
        const at = { clientX: box.x + box.width * 0.4, clientY: box.y + box.height * 0.4, bubbles: true, cancelable: true };
        canvas.dispatchEvent(new WheelEvent('wheel', { ...at, deltaY: i % 40 < 20 ? -120 : 120, ctrlKey: true }));
        const now = await new Promise(requestAnimationFrame);
        times.push(now - last);
        last = now;
    }
    return times;
}"""
