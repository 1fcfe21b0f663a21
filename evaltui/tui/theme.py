"""The two themes of evaltui, the roles of texts and rows, and their styles in any theme.

A line is a list of `(text, role)`. A role is one or more words from `COLORS` and `FILLS`, `chip`, `bold`,
`underline`, `strike`: `muted`, `bold error`, `success exp`. Only this module has colours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from textual.app import App, ReturnType
from textual.color import Color
from textual.style import Style
from textual.theme import Theme

from evaltui.text.glyphs import ascii_only

_DARK_COLORS = {
    "muted": "#8E96AB",
    "faint": "#6F7790",
    "line": "#2E3342",
    "chip-text": "#0F1117",
    "sel": "#232C4D",
    "sel-blur": "#1E222D",
    "text-primary": "#7C9CFF",
    "text-success": "#6CCB8A",
    "text-error": "#F0727E",
    "text-warning": "#E3B360",
    "exp": "#16281F",
    "act": "#311A22",
    "exp-hi": "#24563A",
    "act-hi": "#6A2A38",
    "screen-selection-background": "#36436F",
    "span-model": "#7C9CFF",
    "span-tool": "#6FC3C9",
    "span-agent": "#C0A4F5",
    "key": "#94A9E8",
    "string": "#8FD0C8",
    "number": "#C9A6F7",
    "keyword": "#C9A6F7",
    "function": "#8FB4FF",
    "comment": "#8089A3",
}
_LIGHT_COLORS = {
    "muted": "#5B6378",
    "faint": "#7A8196",
    "line": "#CDD3E0",
    "chip-text": "#FFFFFF",
    "sel": "#DCE4FF",
    "sel-blur": "#ECEEF4",
    "text-primary": "#3558D4",
    "text-success": "#23803B",
    "text-error": "#C42B3E",
    "text-warning": "#9A6200",
    "exp": "#E3F4E7",
    "act": "#FCE6E9",
    "exp-hi": "#B5E3C0",
    "act-hi": "#F6BCC4",
    "screen-selection-background": "#BFCCF5",
    "span-model": "#3558D4",
    "span-tool": "#0B7285",
    "span-agent": "#7A3EC8",
    "key": "#3A55A8",
    "string": "#0B7265",
    "number": "#7A3EC8",
    "keyword": "#7A3EC8",
    "function": "#2F5BD0",
    "comment": "#6A7288",
}
DARK_THEME, LIGHT_THEME = "evaltui-dark", "evaltui-light"
THEMES = (
    Theme(
        name=DARK_THEME,
        primary="#7C9CFF",
        secondary="#6FC3C9",
        accent="#C0A4F5",
        success="#6CCB8A",
        error="#F0727E",
        warning="#E3B360",
        foreground="#D9DDE8",
        background="#0F1117",
        surface="#171A23",
        panel="#20242F",
        variables=_DARK_COLORS,
    ),
    Theme(
        name=LIGHT_THEME,
        primary="#3558D4",
        secondary="#0B7285",
        accent="#7A3EC8",
        success="#23803B",
        error="#C42B3E",
        warning="#9A6200",
        foreground="#1E2333",
        background="#FBFBFD",
        surface="#F1F3F8",
        panel="#E6E9F1",
        dark=False,
        variables=_LIGHT_COLORS,
    ),
)

# The colours of texts, by the variable that holds them.
COLORS: Mapping[str, str] = {
    "foreground": "foreground",
    "muted": "muted",
    "faint": "faint",
    "line": "line",
    "accent": "text-primary",
    "success": "text-success",
    "error": "text-error",
    "warning": "text-warning",
    "model": "span-model",
    "tool": "span-tool",
    "agent": "span-agent",
    "key": "key",
    "string": "string",
    "number": "number",
    "keyword": "keyword",
    "function": "function",
    "comment": "comment",
}
# What lies behind them. `chip` is a fill with its own colour of text, `selection` what the mouse selects.
FILLS = ("surface", "panel", "sel", "sel-blur", "exp", "act", "exp-hi", "act-hi")


def role_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """The role variables that a theme lacks, made from its other variables."""
    background = Color.parse(variables["background"])
    made = _ansi_variables() if background.ansi is not None else _blend_colors(variables, background)
    return {name: value for name, value in made.items() if name not in variables}


def _blend_colors(variables: Mapping[str, str], background: Color) -> dict[str, str]:
    def over(name: str, share: float) -> str:
        return background.blend(Color.parse(variables[name]), share, alpha=1).hex

    primary = Color.parse(variables["primary"])
    faint = over("foreground", 0.45)
    return {
        "muted": over("foreground", 0.6),
        "faint": faint,
        "line": over("foreground", 0.18),
        "chip-text": primary.get_contrast_text(1).hex,
        "sel": over("primary", 0.25),
        "sel-blur": over("foreground", 0.07),
        "exp": over("success", 0.14),
        "act": over("error", 0.14),
        "exp-hi": over("success", 0.35),
        "act-hi": over("error", 0.35),
        "span-model": variables["text-primary"],
        "span-tool": variables["text-secondary"],
        "span-agent": variables["text-accent"],
        "key": over("text-primary", 0.8),
        "string": variables["text-secondary"],
        "number": variables["text-accent"],
        "keyword": variables["text-accent"],
        "function": variables["text-primary"],
        "comment": faint,
    }


def _ansi_variables() -> dict[str, str]:
    """The terminal's own colours: fills have none, so `_ANSI_STYLES` marks them in other ways."""
    plain = ("muted", "faint", "comment")
    fills = ("sel", "sel-blur", "exp", "act", "exp-hi", "act-hi")
    return {
        **dict.fromkeys((*plain, *fills, "chip-text"), "ansi_default"),
        "line": "ansi_bright_black",
        "span-model": "ansi_blue",
        "span-tool": "ansi_cyan",
        "span-agent": "ansi_magenta",
        "key": "ansi_blue",
        "string": "ansi_cyan",
        "number": "ansi_magenta",
        "keyword": "ansi_magenta",
        "function": "ansi_blue",
    }


class Palette:
    """The styles of roles for the variables of a theme."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        colors_by_name = {**role_variables(variables), **variables}
        colors = {word: Color.parse(colors_by_name[name]) for word, name in COLORS.items()}
        self._words = {word: Style(foreground=color) for word, color in colors.items()}
        if Color.parse(colors_by_name["background"]).ansi is None:
            self._words |= {word: Style(background=Color.parse(colors_by_name[word])) for word in FILLS}
            primary, text = Color.parse(colors_by_name["primary"]), Color.parse(colors_by_name["chip-text"])
            self._words["chip"] = Style(primary, text, bold=True)
            self._words["selection"] = Style(Color.parse(colors_by_name["screen-selection-background"]))
        else:
            self._words |= _ANSI_STYLES
        self._words |= _ATTRIBUTES
        self._styles: dict[tuple[str, str], Style] = {}

    def style(self, role: str, row: str = "") -> Style:
        """The style of a role in a row with another role, to be added to the style of a widget.

        Words that are no role have no style.
        """
        style = self._styles.get((role, row))
        if style is None:
            words = role.split()
            if row.startswith("sel"):
                words = [_CURRENT_ROLES.get(word, word) for word in words]
            styles = [self._words.get(word, Style()) for word in words]
            if self._words.get(row, Style()).reverse or any(style.reverse for style in styles):
                # Colours that change places with the ground would be patches.
                styles = [style for style in styles if style.foreground is None]
            style = self._styles[role, row] = sum(styles, start=Style())
        return style


_ATTRIBUTES: Mapping[str, Style] = {
    "bold": Style(bold=True),
    "underline": Style(underline=True),
    "strike": Style(strike=True),
}
# What is faint could not be read on a current row; the sides of a difference are stronger there.
_CURRENT_ROLES = {"faint": "muted", "exp": "exp-hi", "act": "act-hi"}
# Terminals have no fills that every text can be read on.
_ANSI_STYLES: Mapping[str, Style] = {
    **dict.fromkeys(("muted", "faint", "comment"), Style(dim=True)),
    **dict.fromkeys(("surface", "panel", "sel-blur", "exp", "act"), Style()),
    **dict.fromkeys(("sel", "exp-hi", "act-hi"), Style(reverse=True)),
    "chip": Style(reverse=True, bold=True),
    "selection": Style(reverse=True),
}
_PALETTES: WeakKeyDictionary[App[Any], tuple[Mapping[str, str], Palette]] = WeakKeyDictionary()


def palette(app: App[Any]) -> Palette:
    """The palette of the app's current theme."""
    variables, cached = _PALETTES.get(app, (None, None))
    if cached is None or variables is not app.theme_variables:
        cached = Palette(app.theme_variables)
        _PALETTES[app] = app.theme_variables, cached
    return cached


class ThemedApp(App[ReturnType]):
    """An app with the themes of evaltui besides Textual's, and the variables of all roles in each theme."""

    def __init__(self) -> None:
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.begin_with_theme(DARK_THEME)
        self.set_class(ascii_only(), "-ascii")

    def begin_with_theme(self, name: str) -> None:
        """Sets the theme before the first drawing, so that styles are parsed once."""
        before = self.theme
        self.set_reactive(App.theme, name)
        dark = self.current_theme.dark
        self.set_class(False, f"-theme-{before}", update=False)
        for css_class, applies in ((f"-theme-{name}", True), ("-dark-mode", dark), ("-light-mode", not dark)):
            self.set_class(applies, css_class, update=False)
        self.stylesheet.set_variables(self.get_css_variables())

    def get_css_variables(self) -> dict[str, str]:
        variables = super().get_css_variables()
        self.theme_variables = {**role_variables(variables), **variables}
        return self.theme_variables
