"""What is said where there is nothing to show."""

from __future__ import annotations

from evaltui.core.show import visible
from evaltui.files.workspace import Workspace
from evaltui.tui.pages.writer import Page


def write_no_sets(page: Page, workspace: Workspace) -> None:
    """Where was looked, what was passed over, and what to do."""
    page.text([(f"No eval sets yet in {visible(str(workspace.folder))}.", "bold")])
    page.blank()
    page.text(
        [
            (
                "In the list of cases (1), o writes a case in a new set and O makes a set. f5 finds what "
                "was saved there as NAME.evalset.json or NAME.test.json, and --set FILE opens one.",
                "",
            )
        ]
    )
    page.blank()
    page.text(
        [("Looked in: the folder itself, eval*/ and test*/ in it, eval*/ and tests/ beside it.", "dim")]
    )
    if workspace.skipped:
        page.blank()
        page.row(("Passed over", "bold"))
    for skipped in workspace.skipped:
        page.hanging([(f"  {visible(str(skipped.path))}  ", ""), (visible(skipped.reason), "dim")], 4)
