"""What may be loaded, seen from a fresh interpreter."""

import subprocess
import sys

import pytest


def loaded_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["evaltui.workbench.actions", "evaltui.workbench.running"])
def test_the_workbench_knows_no_screen(module):
    assert not {"textual", "google.adk"} & loaded_after(f"import {module}")


def test_the_first_frame_does_not_wait_for_the_models():
    loaded = loaded_after("import evaltui.tui.app")
    assert "textual" in loaded
    assert not {"pydantic", "google.genai", "rouge_score", "google.adk"} & loaded


@pytest.mark.parametrize(
    "seen_later",
    [
        *(f"evaltui.tui.panes.{pane}" for pane in ("case", "chat", "console", "result", "trace")),
        *(f"evaltui.tui.screens.{screen}" for screen in ("details", "keys", "prompt", "chooser")),
        "evaltui.tui.screens.finding",
        "evaltui.core.conversation.responding",
        "evaltui.workbench.chat.controller",
        "evaltui.workbench.selected_case",
        # What edits, types, reads results or shows pages.
        "evaltui.core.jsondoc.edits",
        "evaltui.core.model.events",
        "evaltui.core.model.outcome",
        "evaltui.files.open_file",
        "evaltui.tui.pages.writer",
        "evaltui.tui.widgets.fields",
        "evaltui.workbench.set_totals",
        "textual.widgets._text_area",
        "importlib.metadata",
    ],
)
def test_the_first_frame_does_not_wait_for_what_is_seen_later(seen_later, first_frame):
    assert seen_later not in first_frame


@pytest.fixture(scope="module")
def first_frame():
    return loaded_after("import evaltui.tui.app")
