"""Themes and roles: what every theme has, what can be read, and that nobody else knows a colour."""

import ast
import re
from pathlib import Path

import pytest
from textual.app import App
from textual.color import COLOR_NAME_TO_RGB, Color
from textual.style import Style
from textual.theme import BUILTIN_THEMES

import evaltui
from evaltui.tui.theme import (
    COLORS,
    DARK_THEME,
    FILLS,
    LIGHT_THEME,
    THEMES,
    Palette,
    ThemedApp,
    palette,
    role_variables,
)
from evaltui.tui.widgets.choices import ChoiceList
from evaltui.tui.widgets.fields import FieldText

PACKAGE = Path(evaltui.__file__).parent
DRAWN = [PACKAGE / "text", PACKAGE / "tui", PACKAGE / "reports", PACKAGE / "core" / "compare"]
# Names that the roles replace.
NO_ROLES = {"dim", "green", "red", "yellow", "blue", "cyan", "magenta", "white", "black", "italic", "reverse"}
OURS = {theme.name: theme for theme in THEMES}


def variables_of(theme):
    variables = {**theme.to_color_system().generate(), **theme.variables}
    return {**role_variables(variables), **variables}


def contrast(text, ground):
    def luminance(color):
        parts = [part / 255 for part in Color.parse(color).rgb]
        r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    darker, lighter = sorted((luminance(text), luminance(ground)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("name", [DARK_THEME, LIGHT_THEME])
def test_every_role_can_be_read(name):
    known = variables_of(OURS[name])
    for word, variable in COLORS.items():
        least = {"faint": 3, "line": 0}.get(word, 4.5)
        assert contrast(known[variable], known["background"]) >= least, word
        assert contrast(known[variable], known["surface"]) >= least - 0.2, word
    for word in ("foreground", "muted", "accent", "success", "error", "warning"):
        assert contrast(known[COLORS[word]], known["sel"]) >= 3, word
    for fill in FILLS:
        assert contrast(known["foreground"], known[fill]) >= 4.5, fill
    assert contrast(known["chip-text"], known["primary"]) >= 4.5
    assert contrast(known["text-success"], known["exp"]) >= 4
    assert contrast(known["text-error"], known["act"]) >= 4


@pytest.mark.parametrize("theme", [*BUILTIN_THEMES.values(), *THEMES], ids=lambda theme: theme.name)
def test_every_theme_has_every_role(theme):
    known = variables_of(theme)
    for name in {*COLORS.values(), *FILLS, "chip-text"}:
        Color.parse(known[name])
    styles = Palette(known)
    assert styles.style("bold error").bold
    if theme.ansi:
        assert styles.style("sel").reverse
        assert styles.style("muted").dim
        assert styles.style("bold error", "sel") == Style(bold=True), "no patches of colour"
        assert styles.style("act-hi key") == Style(reverse=True)
    else:
        assert styles.style("error act").background == Color.parse(known["act"])
        assert styles.style("chip").foreground == Color.parse(known["chip-text"])
        assert styles.style("faint exp", "sel") == styles.style("muted exp-hi")


def test_a_palette_is_that_of_the_theme_of_now():
    app: App[None] = ThemedApp()
    assert app.theme == DARK_THEME
    app.theme_variables = app.get_css_variables()
    before = palette(app)
    assert palette(app) is before
    app.theme = LIGHT_THEME
    app.get_css_variables()
    assert palette(app).style("error") != before.style("error")
    assert {theme.name for theme in THEMES} | BUILTIN_THEMES.keys() <= app.available_themes.keys()


def sources(*suffixes):
    for folder in DRAWN:
        yield from (path for path in sorted(folder.rglob("*")) if path.suffix in suffixes)


def test_stylesheets_have_no_literal_colours():
    named = "|".join(sorted(COLOR_NAME_TO_RGB.keys() - {"transparent"}, key=len, reverse=True))
    literal = re.compile(rf"#[0-9a-fA-F]{{3,8}}\b(?=[^{{]*;)|\brgba?\(|\bhsla?\(|:[^;{{]*\b(?:{named})\b")
    for path in sources(".tcss"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        found = [line for line in text.splitlines() if literal.search(re.sub(r"\$[\w-]+", "", line))]
        assert not found, (path.name, found)


def test_only_the_theme_knows_colours_and_lines_have_only_roles():
    for path in sources(".py"):
        if path.name == "theme.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not re.fullmatch(r"#[0-9a-fA-F]{6}|ansi_\w+", node.value), (path.name, node.value)
            if isinstance(node, ast.Tuple) and len(node.elts) == 2 and isinstance(node.elts[1], ast.Constant):
                words = str(node.elts[1].value).split()
                assert not NO_ROLES.intersection(words), (path.name, node.lineno, words)


async def test_json_is_coloured_while_it_is_typed():
    class Typing(ThemedApp[None]):
        def compose(self):
            yield FieldText(id="field")

    app = Typing()
    async with app.run_test() as pilot:
        field = app.query_one(FieldText)
        field.show_text('{"a": 1}\n"\u200b"', selected=False, is_json=True)
        await pilot.pause()
        key = Color.parse(variables_of(OURS[DARK_THEME])["key"]).rich_color
        line = field.get_line(0)
        roles = {line.plain[span.start : span.end]: span.style.color for span in line.spans}
        assert roles['"a"'] == key
        assert field.get_line(1).plain == '"\ufffd"'


async def test_what_textual_draws_follows_the_theme():
    class Choosing(ThemedApp[None]):
        def compose(self):
            yield ChoiceList(1, lambda number, is_current: [("one", "error")])

    app = Choosing()
    async with app.run_test() as pilot:
        for name in (DARK_THEME, LIGHT_THEME):
            app.theme = name
            await pilot.pause()
            shown = app.query_one(ChoiceList).get_option_at_index(0).prompt
            color = Color.parse(variables_of(OURS[name])["text-error"])
            assert [span.style.foreground for span in shown.spans] == [color]
