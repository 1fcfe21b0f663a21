"""ASCII forms of glyphs: all that is drawn has one, and wider ones do not move what is behind a gap."""

import io
import sys
from pathlib import Path

import pytest

import evaltui
from evaltui.text.glyphs import (
    ASCII,
    BAR,
    EMPTY_BAR,
    HALF_BAR,
    SPARKS,
    THRESHOLD,
    ascii_only,
    in_ascii,
    line_for_terminal,
)
from evaltui.text.outcomes import GLYPHS, ROW_MARKS

PACKAGE = Path(evaltui.__file__).parent


def test_every_glyph_has_an_ascii_form():
    marks = {mark for mark, _ in ROW_MARKS.values()}
    drawn = {*GLYPHS.values(), *marks, *SPARKS, BAR, HALF_BAR, EMPTY_BAR, THRESHOLD}
    assert {glyph for glyph in drawn if not glyph.isascii()} <= ASCII.keys()
    assert all(form.isascii() for form in ASCII.values())
    assert all(len(glyph) == 1 for glyph in ASCII)


def test_what_the_screens_write_has_ascii_forms():
    known = {*ASCII, "ß", "é", "\u2400", "\ufffd"}
    for path in sorted((PACKAGE / "tui").rglob("*.py")):
        drawn = set(path.read_text(encoding="utf-8"))
        assert {letter for letter in drawn if not letter.isascii()} <= known, path.name


def test_wider_forms_take_from_the_next_gap():
    line = [("≠ degrees   19", "error"), ("      ", ""), ("≥ 0.80", "muted")]
    drawn = in_ascii(line)
    assert [role for _, role in drawn] == ["error", "", "muted"]
    assert "".join(text for text, _ in drawn) == "!= degrees  19      >= 0.80"
    assert in_ascii([("→ a", "")]) == [("-> a", "")]
    assert in_ascii([("✓ 7  ✗ 5", "")]) == [("+ 7  x 5", "")]


@pytest.mark.parametrize(
    ("encoding", "shown"), [("ascii", "+ 19 ?C ??"), ("latin-1", "+ 19 °C ??"), ("utf-8", "✓ 19 °C 你")]
)
def test_what_a_terminal_cannot_show_is_as_wide_as_before(monkeypatch, encoding, shown):
    monkeypatch.delenv("EVALTUI_ASCII", raising=False)
    monkeypatch.setattr(sys, "__stdout__", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    ascii_only.cache_clear()
    try:
        assert line_for_terminal([("✓ 19 °C 你", "")]) == [(shown, "")]
    finally:
        ascii_only.cache_clear()
