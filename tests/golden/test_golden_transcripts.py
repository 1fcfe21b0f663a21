"""The commands do what the transcripts show, and the transcripts show every command and option."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator

import pytest
from normalised_output import Normaliser
from threaded_runs import process_in_a_thread
from transcript_shell import Shell
from transcripts import FOLDER, ROOT, Transcript, read_transcripts

from evaltui.testing import background

pytest_plugins = ["pytester"]
TRANSCRIPTS = read_transcripts()
REWRITE = "EVALTUI_REWRITE_TRANSCRIPTS"


@pytest.fixture
def shell(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    monkeypatch.setattr(background, "own_process", process_in_a_thread)
    monkeypatch.setenv("TZ", "UTC")
    shell = Shell(pytester, monkeypatch)
    yield shell
    shell.close()


def _marked(transcript: Transcript) -> object:
    marks = [pytest.mark.thorough] if transcript.thorough else []
    return pytest.param(transcript, id=transcript.name, marks=marks)


@pytest.mark.parametrize("transcript", [*map(_marked, TRANSCRIPTS)])
def test_commands_do_what_the_transcript_shows(transcript, shell):
    if transcript.needs:
        pytest.importorskip(transcript.needs)
    transcript.copy_agents(shell.folder)
    normalised = Normaliser(shell.folder, ROOT)
    text = transcript.with_outputs(lambda command: normalised(shell.run(command)))
    if os.environ.get(REWRITE):
        (FOLDER / f"{transcript.name}.txt").write_text(text, encoding="utf-8")
        return
    names = f"{transcript.name}.txt", "now"
    diff = difflib.unified_diff(transcript.text.splitlines(), text.splitlines(), *names, lineterm="")
    if transcript.text != text:
        pytest.fail("\n".join(diff), pytrace=False)
