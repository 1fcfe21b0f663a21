"""The tour of the demo as an animated SVG: its keys are pressed in the real program, every screen is a frame.

Rows that are the same in several frames are stored once. Nothing is loaded from elsewhere: a README shows it
as a picture.
"""

from __future__ import annotations

import html
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.pilot import Pilot
from waiting import PATIENCE_WITH_PROCESSES, until

from evaltui.project.templates import create_demo
from evaltui.tui.app import WorkbenchApp
from evaltui.tui.start.view import TOUR_STEPS, TourLine, TourStep
from evaltui.tui.theme import DARK_THEME
from evaltui.workbench.workbench import Workbench

SIZE = (100, 30)
CELL, LINE, MARGIN = 8, 16, 12
SECONDS_OF_FRAME = 1.4
SECONDS_OF_LAST = 5.0

Row = tuple[tuple[str, Style], ...]
Frame = tuple[Row, ...]


async def frames() -> list[Frame]:
    """Every screen of the tour that differs from the one before it."""
    found: list[Frame] = []
    with tempfile.TemporaryDirectory() as folder:
        # The cases are run once what was opened is remembered: not before the first frame is captured.
        captured = threading.Event()
        app = WorkbenchApp(Workbench(create_demo(Path(folder))), tour=True, remember=captured.wait)
        async with app.run_test(size=SIZE) as pilot:
            app.theme = DARK_THEME
            try:
                await _until(app, lambda: TOUR_STEPS[0].text in "\n".join(_texts(app)))
                await _capture(pilot, found)
            finally:
                captured.set()
            for number, step in enumerate(TOUR_STEPS):
                async for _ in pressed(pilot, step):
                    await _capture(pilot, found)
                tour = app.screen_stack[0].query_one(TourLine)
                await _until(app, lambda tour=tour, number=number: tour.index > number)
                await _settled(app)
                await _capture(pilot, found)
    return found


async def pressed(pilot: Pilot, step: TourStep):
    """Presses the keys of a step; comes back after each of them, and once after a text."""
    for key in step.keys:
        if " " in key:
            await pilot.press(*("space" if letter == " " else letter for letter in key))
        else:
            await pilot.press(key)
        await _settled(pilot.app)
        await pilot.pause()
        yield key


async def _settled(app: WorkbenchApp) -> None:
    """Nothing runs, is asked, or is about to be drawn."""
    bench = app.workbench
    await _until(app, lambda: not bench.runs.is_running)
    await _until(app, lambda: "chat" not in vars(bench) or not bench.chat.busy)
    await _until(app, lambda: not app.screen_stack[0]._will_draw)


async def _until(app: WorkbenchApp, condition) -> None:
    await until(condition, lambda: "\n".join(_texts(app)), PATIENCE_WITH_PROCESSES)


def _texts(app: WorkbenchApp) -> list[str]:
    return ["".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()]


async def _capture(pilot: Pilot, found: list[Frame]) -> None:
    await pilot.pause()
    strips = pilot.app.screen._compositor.render_strips()
    frame = tuple(_row(strip) for strip in strips)
    if not found or frame != found[-1]:
        found.append(frame)


def _row(segments: list[Segment]) -> Row:
    return tuple(
        (segment.text, _plain(segment.style or Style()))
        for segment in Segment.simplify(segments)
        if segment.text
    )


def _plain(style: Style) -> Style:
    """What is drawn of a style; links and metadata are left out."""
    color, ground = (style.bgcolor, style.color) if style.reverse else (style.color, style.bgcolor)
    return Style(color=color, bgcolor=ground, bold=style.bold, dim=style.dim, underline=style.underline)


class Svg:
    """An animated SVG of frames."""

    def __init__(self, shown: list[Frame]) -> None:
        self._frames = shown
        self._classes: dict[str, str] = {}
        self._rows: dict[Row, str] = {}

    def text(self) -> str:
        width, height = SIZE[0] * CELL + 2 * MARGIN, SIZE[1] * LINE + 2 * MARGIN
        total = SECONDS_OF_FRAME * (len(self._frames) - 1) + SECONDS_OF_LAST
        drawn = [self._frame(number, frame) for number, frame in enumerate(self._frames)]
        rows = [f'<g id="{name}">{"".join(self._spans(row))}</g>' for row, name in self._rows.items()]
        shown = [self._keyframes(number, total) for number in range(len(self._frames))]
        ground = self._frames[0][1][-1][1].bgcolor
        styles = [f".{name}{{{css}}}" for css, name in self._classes.items()]
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
                "<style>text{font:13px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
                "white-space:pre}.f{visibility:hidden}",
                *styles,
                *shown,
                "</style>",
                f'<rect width="{width}" height="{height}" rx="8" fill="{_hex(ground)}"/>',
                "<defs>",
                *rows,
                "</defs>",
                *drawn,
                "</svg>\n",
            ]
        )

    def _keyframes(self, number: int, total: float) -> str:
        begin = number * SECONDS_OF_FRAME
        end = total if number == len(self._frames) - 1 else begin + SECONDS_OF_FRAME
        first, last = 100 * begin / total, 100 * end / total
        hidden = f"0%{{visibility:hidden}}{first:.3f}%" if number else "0%"
        after = "" if end == total else f"{last:.3f}%{{visibility:hidden}}"
        return (
            f"@keyframes k{number}{{{hidden}{{visibility:visible}}{after}}}"
            f"#f{number}{{animation:k{number} {total:.1f}s steps(1,end) infinite}}"
        )

    def _frame(self, number: int, frame: Frame) -> str:
        uses = []
        for line, row in enumerate(frame):
            if any(text.strip() for text, _ in row):
                name = self._rows.setdefault(row, f"r{len(self._rows)}")
                uses.append(f'<use href="#{name}" y="{line * LINE}"/>')
        return f'<g id="f{number}" class="f" transform="translate({MARGIN} {MARGIN})">{"".join(uses)}</g>'

    def _spans(self, row: Row) -> Iterator[str]:
        column = 0
        ground = self._frames[0][1][-1][1].bgcolor
        for text, style in row:
            cells = cell_len(text)
            x, width = column * CELL, cells * CELL
            if style.bgcolor is not None and style.bgcolor != ground:
                yield f'<rect x="{x}" width="{width}" height="{LINE}" class="{self._class("", style)}"/>'
            stripped = text.strip()
            if stripped:
                lead = cell_len(text) - cell_len(text.lstrip())
                at, length = x + lead * CELL, cell_len(stripped) * CELL
                name = self._class("text", style)
                yield (
                    f'<text x="{at}" y="{LINE - 4}" textLength="{length}" class="{name}">'
                    f"{html.escape(stripped, quote=False)}</text>"
                )
            column += cells

    def _class(self, kind: str, style: Style) -> str:
        if not kind:
            css = f"fill:{_hex(style.bgcolor)}"
        else:
            css = f"fill:{_hex(style.color)}"
            css += ";font-weight:700" if style.bold else ""
            css += ";opacity:.6" if style.dim else ""
            css += ";text-decoration:underline" if style.underline else ""
        return self._classes.setdefault(css, f"c{len(self._classes)}")


def _hex(color) -> str:
    return color.triplet.hex if color is not None and color.triplet is not None else "#d9dde8"
