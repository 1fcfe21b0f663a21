"""The HTML report of a real run of the travel desk, as a browser shows it."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from drawing import FOLDER, ROOT
from environments import browser_path
from playwright.sync_api import Page, sync_playwright

PICTURE = FOLDER / "report.png"
_SIZE = {"width": 1280, "height": 860}
_KEY = b"Description\0\0\0\0\0"
# What is different in every run.
_TIMES = re.compile(
    r"\d{4}-\d\d-\d\dT\S+|<?[\d.]+ m?s\b|invocation_duration_v1 [\d.]+|\S+\.sqlite| · waiting "
)


def draw_report() -> bytes:
    """A PNG, and as its description the words of the report."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        page = browser.new_page(viewport=_SIZE, color_scheme="dark")
        page.goto(_report(Path(folder)).as_uri())
        words = _words(page)
        page.locator(".case[open] .trace > summary").click()
        png = page.screenshot()
        browser.close()
    return _described(png, words)


def words_now() -> str:
    """The words of the report as it is now."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(_report(Path(folder)).as_uri())
        words = _words(page)
        browser.close()
    return words


def stored_words() -> str:
    """The words of the report when the picture was made."""
    png = PICTURE.read_bytes()
    start = png.index(_KEY)
    (size,) = struct.unpack(">I", png[start - 8 : start - 4])
    return png[start + len(_KEY) : start + size].decode()


def _report(folder: Path) -> Path:
    """Run the agent. It is copied first: a run writes into its folder."""
    source = ROOT / "sample_agents" / "travel_desk"
    agent = folder / "sample_agents" / "travel_desk"
    shutil.copytree(source, agent, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    command = [sys.executable, "-m", "evaltui", "run", "sample_agents/travel_desk", "--exit-zero"]
    subprocess.run([*command, "--report", "html=report.html"], cwd=folder, check=True)
    return folder / "report.html"


def _words(page: Page) -> str:
    return " ".join(_TIMES.sub("", page.inner_text("body")).split())


def _described(png: bytes, text: str) -> bytes:
    """The picture with an `iTXt` chunk behind its header."""
    data = b"iTXt" + _KEY + text.encode()
    chunk = struct.pack(">I", len(data) - 4) + data + struct.pack(">I", zlib.crc32(data))
    end_of_header = 8 + 25
    return png[:end_of_header] + chunk + png[end_of_header:]
