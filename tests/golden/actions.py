"""The list of all actions: `python -m tests.golden.actions` writes it."""

from __future__ import annotations

from pathlib import Path

from evaltui.workbench.actions import ACTIONS

FILE = Path(__file__).with_name("actions.txt")


def action_lines() -> list[str]:
    """`undo | u ctrl+z | MAIN CRITERIA | acts`: ids, keys, places; what acts is refused read-only."""
    return sorted(
        f"{action.id} | {action.key_names} | {' '.join(scope.name for scope in action.where)}"
        f"{' | acts' if action.acts else ''}"
        for action in ACTIONS
    )


if __name__ == "__main__":
    FILE.write_text("".join(f"{line}\n" for line in action_lines()), encoding="utf-8")
