"""The commands do what the transcripts show, and the transcripts show every command and option."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

# What is imported first in a test with `pytester` is forgotten after it, while environments of templates that
# are kept still have its classes.
import jinja2  # noqa: F401
import pytest
from forked_hosts import ForkedHosts
from normalised_output import Normaliser
from transcript_shell import Shell
from transcripts import FOLDER, ROOT, Transcript, read_transcripts

from evaltui.commands.command_table import COMMAND_NAMES
from evaltui.commands.parser import Parser, parser_of
from evaltui.pytest_plugin import pytest_addoption
from tests import manual

pytest_plugins = ["pytester"]
TRANSCRIPTS = read_transcripts()
REWRITE = "EVALTUI_REWRITE_TRANSCRIPTS"


@pytest.fixture(scope="module")
def host_template() -> Iterator[ForkedHosts]:
    """Few agents of the transcripts need google-adk."""
    hosts = ForkedHosts()
    yield hosts
    hosts.close()


@pytest.fixture
def shell(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    monkeypatch.setenv("TZ", "UTC")
    # As many processes of agents on every machine.
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
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
    _compare(FOLDER / f"{transcript.name}.txt", text)


def _compare(path: Path, text: str) -> None:
    """Fail with the differences from a golden file, or write it where that is asked for."""
    if os.environ.get(REWRITE):
        path.write_text(text, encoding="utf-8")
        return
    golden = path.read_text(encoding="utf-8")
    if golden != text:
        lines = golden.splitlines(), text.splitlines()
        pytest.fail("\n".join(difflib.unified_diff(*lines, path.name, "now", lineterm="")), pytrace=False)


def _words(program: str) -> list[list[str]]:
    """The words of each command line of a program behind its name, without assignments of variables."""
    lines = (shlex.split(command) for transcript in TRANSCRIPTS for command in transcript.commands)
    without = ([word for word in line if not re.match(r"[A-Z_]+=", word)] for line in lines)
    return [line[1:] for line in without if line[0] == program]


def _shown(words: list[list[str]]) -> set[str]:
    """The words, of options with a value in the same word both, too."""
    return {part for line in words for word in line for part in (word, *word.split("=", 1))}


def _missing(parser: Parser, shown: set[str]) -> set[str]:
    """The options in a parser's help, and the values that arguments can choose from, that are not shown."""
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    options = [action.option_strings for action in actions if action.option_strings]
    choices = {str(choice) for action in actions for choice in action.choices or ()}
    return {names[-1] for names in options if not shown & {*names} and "-h" not in names} | (choices - shown)


def test_every_command_and_option_is_in_a_transcript():
    """But for the workbench, which opens in a terminal only: its screens are golden files of their own."""
    lines = _words("evaltui")
    missing = set()
    for name in COMMAND_NAMES:
        shown = _shown([line[1:] for line in lines if line[:1] == [name]])
        missing |= {f"{name} {word}" for word in _missing(parser_of(name), shown)}
        if not any(line[:1] == [name] for line in lines):
            missing.add(name)
    options = manual._Options()
    pytest_addoption(options)
    shown = _shown(_words("pytest"))
    missing |= {f"pytest {form.split()[0]}" for form, _ in options.added} - {
        f"pytest {word}" for word in shown
    }
    assert not missing, f"no transcript shows {', '.join(sorted(missing))}"
