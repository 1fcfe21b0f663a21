"""How keys are called on screen."""

from __future__ import annotations

_NAMES = {
    "escape": "esc",
    "question_mark": "?",
    "slash": "/",
    "asterisk": "*",
    "exclamation_mark": "!",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "equals_sign": "=",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "page up",
    "pagedown": "page down",
}


def key_name(key: str) -> str:
    """`escape` as `esc`, `shift+tab` and `R` as they are."""
    return _NAMES.get(key, key)
