"""What is said where there is nothing to show."""

from __future__ import annotations

from evaltui.files.workspace import Workspace
from evaltui.text.values import show_value, visible
from evaltui.tui.pages.problems import write_error
from evaltui.tui.pages.writer import Page
from evaltui.workbench.chat.conversation import Transcript

_MOST_STATE = 400


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
        [
            (
                "Looked in: the folder itself, eval*/ and test*/ in it, eval*/ and tests/ beside it and "
                "above, up to the root of its project.",
                "dim",
            )
        ]
    )
    if workspace.skipped:
        page.blank()
        page.row(("Passed over", "bold"))
    for skipped in workspace.skipped:
        page.hanging([(f"  {visible(str(skipped.path))}  ", ""), (visible(skipped.reason), "dim")], 4)


def write_nothing_said(page: Page, transcript: Transcript | None) -> None:
    """How a conversation begins, what can be done with it, and why the agent cannot be talked to."""
    if transcript is not None and transcript.broken is not None:
        page.text([("The agent cannot be talked to.", "bold")])
        page.blank()
        write_error(page, transcript.broken)
        page.blank()
        page.text([("The next message tries again, with the code as it is then.", "dim")])
        return
    page.text([("Nothing has been said yet.", "bold")])
    page.blank()
    page.text([("Write a message below, enter sends it.", "")])
    page.blank()
    if transcript is not None:
        _write_start(page, transcript)
    for key, what in (
        ("ctrl+n", "begins with a state, a user or a sub-agent of your choice"),
        ("ctrl+t", "makes a case of what was said"),
        ("c", "in the cases continues a case from its selected turn"),
    ):
        page.labelled(key, [(what, "dim")], "bold")


def _write_start(page: Page, transcript: Transcript) -> None:
    """What was chosen for the conversation."""
    session = transcript.session
    chosen = {"agent": transcript.agent_name or "", "user": session.user_id, "app": session.app_name}
    chosen["state"] = show_value(session.state, _MOST_STATE) if session.state else ""
    for label, value in chosen.items():
        if value:
            page.labelled(label, [(visible(value), "")])
    page.blank()
