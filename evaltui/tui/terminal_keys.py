"""Keys that terminals send in a way that Textual does not know."""

from __future__ import annotations

from typing import Any, cast

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.keys import Keys


def know_alt_enter() -> None:
    """Take alt+enter for ctrl+j, as which many terminals send it anyway.

    Most send it as escape and return, of which Textual makes a return: who wanted a new line would have sent
    a message that is not finished.
    """
    cast("dict[str, Any]", ANSI_SEQUENCES_KEYS)["\x1b\r"] = (Keys.ControlJ,)
