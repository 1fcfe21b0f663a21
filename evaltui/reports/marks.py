"""How outcomes look in reports: a glyph, which says it without colour, and a style."""

from __future__ import annotations

from evaltui.core.model.outcome import Status

GLYPHS = {
    Status.PASSED: "✓",
    Status.FAILED: "✗",
    Status.ERROR: "!",
    Status.NOT_EVALUATED: "–",
    Status.FLAKY: "≈",
    Status.INFORMATIONAL: "·",
}
STYLES = {
    Status.PASSED: "green",
    Status.FAILED: "red",
    Status.ERROR: "red",
    Status.NOT_EVALUATED: "yellow",
    Status.FLAKY: "yellow",
    Status.INFORMATIONAL: "dim",
}
