"""Where the program begins: from here on, Ctrl-C ends it without a word."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

INTERRUPTED = 130


def main() -> NoReturn:
    try:
        _open_what_is_closed()
        from evaltui.cli import main as run

        run()
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)


def _open_what_is_closed() -> None:
    """Started with a standard stream closed, the first file to be opened would take its place."""
    # In this order each gets the number that is free.
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115


if __name__ == "__main__":
    main()
