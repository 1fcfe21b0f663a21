"""What may be loaded, seen from a fresh interpreter."""

import subprocess
import sys

import pytest


def loaded_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["evaltui.workbench.actions", "evaltui.workbench.runs.running"])
def test_the_workbench_knows_no_screen(module):
    assert not {"textual", "google.adk"} & loaded_after(f"import {module}")


def test_the_first_frame_does_not_wait_for_the_models():
    loaded = loaded_after("import evaltui.tui.app")
    assert "textual" in loaded
    assert not {"pydantic", "google.genai", "rouge_score", "google.adk"} & loaded
